// Differentiable pooling. Shapes, dtypes and errors: tensor/ops/pool.h.
#ifndef HAWSER_AUTOGRAD_OPS_POOL_H_
#define HAWSER_AUTOGRAD_OPS_POOL_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::Pool2dOptions;

absl::StatusOr<Tensor> MaxPool2d(const Tensor& x, const Pool2dOptions& options);
absl::StatusOr<Tensor> AvgPool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_POOL_H_
