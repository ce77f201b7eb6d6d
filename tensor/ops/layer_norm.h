// Layer normalization (Ba, Kiros and Hinton, 2016).
//
// The last `normalized_rank` dims of x are one row; every row gets mean 0 and
// variance 1 (biased, plus eps), then weight * . + bias elementwise.
#ifndef HAWSER_TENSOR_OPS_LAYER_NORM_H_
#define HAWSER_TENSOR_OPS_LAYER_NORM_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

struct LayerNormResult {
  Tensor y;     // shape of x
  Tensor mean;  // [rows], f32 for 16-bit x
  Tensor rstd;  // [rows], f32 for 16-bit x: 1 / standard deviation
};

// `weight` and `bias` have the shape of the normalized dims and the dtype of x;
// either may be undefined. kInvalidArgument where something does not fit, or
// `eps` is not at least 0.
absl::StatusOr<LayerNormResult> LayerNorm(const Tensor& x, int normalized_rank,
                                          const Tensor& weight,
                                          const Tensor& bias,
                                          double eps = 1e-5);

struct LayerNormGradients {
  Tensor x;
  Tensor weight;
  Tensor bias;
};

// `mean` and `rstd` are those of the forward pass. The gradients of weight and
// bias have the shape of the normalized dims, also where those were undefined.
absl::StatusOr<LayerNormGradients> LayerNormGrad(
    const Tensor& dy, const Tensor& x, int normalized_rank, const Tensor& mean,
    const Tensor& rstd, const Tensor& weight);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_LAYER_NORM_H_
