#ifndef HAWSER_NN_CONV2D_H_
#define HAWSER_NN_CONV2D_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Two-dimensional convolution: [n, in_channels, h, w] to
// [n, out_channels, oh, ow], sizes as in tensor/ops/conv2d.h.
//
// Parameters: "weight" [out_channels, in_channels / groups, kh, kw], "bias"
// [out_channels]. Initial values: uniform in [-1, 1] / sqrt(fan-in of the
// weight).
class Conv2d final : public Layer {
 public:
  struct Options {
    int64_t in_channels = 0;
    int64_t out_channels = 0;
    std::array<int64_t, 2> kernel = {0, 0};  // Height first, then width.
    tensor::Conv2dOptions convolution = {};  // Stride, padding, ...
    bool bias = true;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument: a size is not positive, groups do not divide both numbers
  // of channels, or dtype is not floating point.
  static absl::StatusOr<std::unique_ptr<Conv2d>> Create(
      const Options& options, tensor::Generator& generator);

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  explicit Conv2d(const Options& options) : options_(options) {}

  const Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_CONV2D_H_
