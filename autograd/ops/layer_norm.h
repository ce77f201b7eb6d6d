// Differentiable layer normalization. Shapes, dtypes and errors:
// tensor/ops/layer_norm.h.
#ifndef HAWSER_AUTOGRAD_OPS_LAYER_NORM_H_
#define HAWSER_AUTOGRAD_OPS_LAYER_NORM_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

absl::StatusOr<Tensor> LayerNorm(const Tensor& x, int normalized_rank,
                                 const Tensor& weight, const Tensor& bias,
                                 double eps = 1e-5);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_LAYER_NORM_H_
