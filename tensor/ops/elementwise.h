// Elementwise arithmetic, functions and comparisons.
//
// Operands have one dtype and one device. Two operands broadcast against each
// other as in NumPy. Results are new, contiguous tensors. f16 and bf16 are
// computed in f32.
//
// As all of tensor/ops/, these record no gradients. kFailedPrecondition for an
// operand that requires one while its thread records: the operation of
// autograd/ops/ that has the same name is to be used, or an
// autograd::NoGradGuard. Comparisons have no gradient, and take any operand.
//
// Integer dtypes: Add Sub Mul Maximum Minimum, their scalar forms, Neg Abs Sign
// Square Relu and comparisons; arithmetic wraps around. bool: Eq, Ne, Where.
//
// kInvalidArgument: shapes that do not broadcast, different dtypes or devices,
// a dtype the operation does not do, an undefined operand. The message names
// the operation, shapes and dtypes.
#ifndef HAWSER_TENSOR_OPS_ELEMENTWISE_H_
#define HAWSER_TENSOR_OPS_ELEMENTWISE_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Sub(const Tensor& a, const Tensor& b);
// a + alpha * b; floating-point dtypes.
absl::StatusOr<Tensor> AddScaled(const Tensor& a, const Tensor& b,
                                 double alpha);
absl::StatusOr<Tensor> Mul(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Div(const Tensor& a, const Tensor& b);
// NaN where either operand is.
absl::StatusOr<Tensor> Maximum(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Minimum(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Pow(const Tensor& a, const Tensor& b);

// For integer dtypes the scalar must be a whole number of their range.
absl::StatusOr<Tensor> AddScalar(const Tensor& a, double b);
absl::StatusOr<Tensor> MulScalar(const Tensor& a, double b);
absl::StatusOr<Tensor> PowScalar(const Tensor& a, double b);

// bool results; comparisons with NaN are false, Ne is true.
absl::StatusOr<Tensor> Eq(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Ne(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Lt(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Le(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Gt(const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> Ge(const Tensor& a, const Tensor& b);

// `condition` is bool; the three broadcast.
absl::StatusOr<Tensor> Where(const Tensor& condition, const Tensor& a,
                             const Tensor& b);

absl::StatusOr<Tensor> Neg(const Tensor& a);
absl::StatusOr<Tensor> Exp(const Tensor& a);
absl::StatusOr<Tensor> Log(const Tensor& a);
absl::StatusOr<Tensor> Sqrt(const Tensor& a);
absl::StatusOr<Tensor> Rsqrt(const Tensor& a);
absl::StatusOr<Tensor> Abs(const Tensor& a);
absl::StatusOr<Tensor> Sign(const Tensor& a);
absl::StatusOr<Tensor> Sin(const Tensor& a);
absl::StatusOr<Tensor> Cos(const Tensor& a);
absl::StatusOr<Tensor> Reciprocal(const Tensor& a);
absl::StatusOr<Tensor> Square(const Tensor& a);
absl::StatusOr<Tensor> Relu(const Tensor& a);
absl::StatusOr<Tensor> Sigmoid(const Tensor& a);
absl::StatusOr<Tensor> Tanh(const Tensor& a);
absl::StatusOr<Tensor> Gelu(const Tensor& a);  // x * Phi(x), with erf
absl::StatusOr<Tensor> Silu(const Tensor& a);

// The gradient of the input, from what the forward pass saved and the gradient
// of its output; both of one shape.
absl::StatusOr<Tensor> ReluGrad(const Tensor& out, const Tensor& dout);
absl::StatusOr<Tensor> SigmoidGrad(const Tensor& out, const Tensor& dout);
absl::StatusOr<Tensor> TanhGrad(const Tensor& out, const Tensor& dout);
absl::StatusOr<Tensor> GeluGrad(const Tensor& x, const Tensor& dout);
absl::StatusOr<Tensor> SiluGrad(const Tensor& x, const Tensor& dout);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_ELEMENTWISE_H_
