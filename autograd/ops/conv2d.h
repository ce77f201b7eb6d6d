// Differentiable convolution. Shapes, dtypes and errors: tensor/ops/conv2d.h.
#ifndef HAWSER_AUTOGRAD_OPS_CONV2D_H_
#define HAWSER_AUTOGRAD_OPS_CONV2D_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::Conv2dOptions;

absl::StatusOr<Tensor> Conv2d(const Tensor& x, const Tensor& weight,
                              const Tensor& bias,
                              const Conv2dOptions& options = {});

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_CONV2D_H_
