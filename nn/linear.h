#ifndef HAWSER_NN_LINEAR_H_
#define HAWSER_NN_LINEAR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// activation(x weight^T + bias): [..., in_features] to [..., out_features].
//
// Parameters: "weight" [out_features, in_features], "bias" [out_features].
// Initial values: uniform in [-1, 1] / sqrt(in_features).
class Linear final : public Layer {
 public:
  struct Options {
    int64_t in_features = 0;
    int64_t out_features = 0;
    bool bias = true;
    // Computed together with the product, without another pass over the result.
    tensor::Activation activation = tensor::Activation::kNone;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument: a size is not positive, or dtype is not floating point.
  static absl::StatusOr<std::unique_ptr<Linear>> Create(
      const Options& options, tensor::Generator& generator);

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  explicit Linear(const Options& options) : options_(options) {}

  const Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_LINEAR_H_
