// Differentiable matrix products. Shapes, dtypes and errors:
// tensor/ops/matmul.h.
#ifndef HAWSER_AUTOGRAD_OPS_MATMUL_H_
#define HAWSER_AUTOGRAD_OPS_MATMUL_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::Activation;

absl::StatusOr<Tensor> MatMul(const Tensor& a, const Tensor& b);

// activation(x w^T + bias) in one node. With kRelu the output is kept for the
// gradient and must not be written in place.
absl::StatusOr<Tensor> Linear(const Tensor& x, const Tensor& w,
                              const Tensor& bias,
                              Activation activation = Activation::kNone);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_MATMUL_H_
