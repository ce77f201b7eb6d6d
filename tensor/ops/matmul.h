// Matrix products of f32, f64, f16 and bf16; 16-bit types are summed in f32.
//
// Transposed views are multiplied where they lie, without a copy. A shape seen
// before by the calling thread costs about a microsecond beyond the arithmetic.
//
// kInvalidArgument: inner sizes that differ, ranks, dtypes or devices that do
// not fit; the message names the operation, shapes and dtypes.
#ifndef HAWSER_TENSOR_OPS_MATMUL_H_
#define HAWSER_TENSOR_OPS_MATMUL_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// The last two dims are matrices, those before are a batch and broadcast. A
// 1-D operand is a row (a) or column (b) whose dim of 1 the result leaves out.
absl::StatusOr<Tensor> MatMul(const Tensor& a, const Tensor& b);

// activation(x w^T + bias): x [..., in], w [out, in], bias [out] or undefined.
absl::StatusOr<Tensor> Linear(const Tensor& x, const Tensor& w,
                              const Tensor& bias,
                              Activation activation = Activation::kNone);

// Which gradients of Linear are wanted.
struct LinearGradNeeds {
  bool x = true;
  bool w = true;
  bool bias = true;
};

// Those not asked for are undefined.
struct LinearGradients {
  Tensor x;     // shape of x
  Tensor w;     // [out, in]
  Tensor bias;  // [out]
};

// The gradients of y = Linear(x, w, bias, activation) from that of y. `y` is
// read for Activation::kRelu only and may be undefined otherwise; `x` is read
// for `needs.w` and `w` for `needs.x`, but both give shapes.
absl::StatusOr<LinearGradients> LinearGrad(const Tensor& x, const Tensor& w,
                                           const Tensor& y, const Tensor& dy,
                                           Activation activation,
                                           LinearGradNeeds needs = {});

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_MATMUL_H_
