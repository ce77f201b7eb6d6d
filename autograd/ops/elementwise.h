// Differentiable elementwise arithmetic and functions. Shapes, dtypes and
// errors: tensor/ops/elementwise.h.
//
// Comparisons do not have gradients: use those of tensor/ops.
#ifndef HAWSER_AUTOGRAD_OPS_ELEMENTWISE_H_
#define HAWSER_AUTOGRAD_OPS_ELEMENTWISE_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Sub(const Tensor& a, const Tensor& b);
// a + alpha * b
absl::StatusOr<Tensor> AddScaled(const Tensor& a, const Tensor& b,
                                 double alpha);
absl::StatusOr<Tensor> Mul(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Div(const Tensor& a, const Tensor& b);
// If a == b or both are NaN, each gets half of the gradient. If one is NaN, it
// gets the whole gradient.
absl::StatusOr<Tensor> Maximum(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Minimum(const Tensor& a, const Tensor& b);
// The gradient of `b` is a^b log(a), and 0 where a = 0 and b >= 0.
absl::StatusOr<Tensor> Pow(const Tensor& a, const Tensor& b);

absl::StatusOr<Tensor> AddScalar(const Tensor& a, double b);
absl::StatusOr<Tensor> MulScalar(const Tensor& a, double b);
absl::StatusOr<Tensor> PowScalar(const Tensor& a, double b);

absl::StatusOr<Tensor> Where(const Tensor& condition, const Tensor& a,
                             const Tensor& b);

absl::StatusOr<Tensor> Neg(const Tensor& a);
absl::StatusOr<Tensor> Exp(const Tensor& a);
absl::StatusOr<Tensor> Log(const Tensor& a);
absl::StatusOr<Tensor> Sqrt(const Tensor& a);
absl::StatusOr<Tensor> Rsqrt(const Tensor& a);
absl::StatusOr<Tensor> Abs(const Tensor& a);   // gradient 0 at 0
absl::StatusOr<Tensor> Sign(const Tensor& a);  // gradient 0 everywhere
absl::StatusOr<Tensor> Sin(const Tensor& a);
absl::StatusOr<Tensor> Cos(const Tensor& a);
absl::StatusOr<Tensor> Reciprocal(const Tensor& a);
absl::StatusOr<Tensor> Square(const Tensor& a);
absl::StatusOr<Tensor> Relu(const Tensor& a);  // gradient 0 at 0
absl::StatusOr<Tensor> Sigmoid(const Tensor& a);
absl::StatusOr<Tensor> Tanh(const Tensor& a);
absl::StatusOr<Tensor> Gelu(const Tensor& a);
absl::StatusOr<Tensor> Silu(const Tensor& a);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_ELEMENTWISE_H_
