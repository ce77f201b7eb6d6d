// Two-dimensional convolution (cross-correlation, as deep learning calls it).
//
// Shapes: x [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] or
// undefined, result [n, o, oh, ow] with
//   oh = (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1.
// f32, f64, f16 and bf16; 16-bit types are summed in f32.
//
// kInvalidArgument: shapes, dtypes, devices or options do not fit; named.
#ifndef HAWSER_TENSOR_OPS_CONV2D_H_
#define HAWSER_TENSOR_OPS_CONV2D_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

absl::StatusOr<Tensor> Conv2d(const Tensor& x, const Tensor& weight,
                              const Tensor& bias,
                              const Conv2dOptions& options = {});

// `dy` is the gradient of the result.
absl::StatusOr<Tensor> Conv2dInputGrad(const Tensor& dy, const Tensor& weight,
                                       const Shape& input_shape,
                                       const Conv2dOptions& options = {});
absl::StatusOr<Tensor> Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                        const Shape& weight_shape,
                                        const Conv2dOptions& options = {});
// [o]
absl::StatusOr<Tensor> Conv2dBiasGrad(const Tensor& dy);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_CONV2D_H_
