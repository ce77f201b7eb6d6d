#ifndef HAWSER_NN_LAYER_NORM_H_
#define HAWSER_NN_LAYER_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::nn {

// Layer normalization over the last dims, as in tensor/ops/layer_norm.h:
// [..., normalized_shape] to the same shape.
//
// Parameters, if `affine`: "weight", initially one, and "bias", initially zero,
// both of the normalized shape.
class LayerNorm final : public Layer {
 public:
  struct Options {
    tensor::Shape normalized_shape = {};
    double eps = 1e-5;  // Added to the variance; at least 0.
    bool affine = true;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument: normalized_shape is empty, or an option is out of range.
  static absl::StatusOr<std::unique_ptr<LayerNorm>> Create(
      const Options& options);

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  explicit LayerNorm(const Options& options) : options_(options) {}

  const Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_LAYER_NORM_H_
