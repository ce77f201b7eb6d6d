// Two-dimensional pooling of x [n, c, h, w] to [n, c, oh, ow] with
//   oh = (h + 2 * padding - kernel) / stride + 1.
//
// Floating-point dtypes. Padding never is a maximum.
//
// kInvalidArgument: shapes, dtypes or options do not fit; named.
#ifndef HAWSER_TENSOR_OPS_POOL_H_
#define HAWSER_TENSOR_OPS_POOL_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

struct MaxPool {
  Tensor values;
  Tensor indices;  // i64: y * w + x of each maximum, in its plane of x
};

// The first of equal elements; a NaN is a maximum.
absl::StatusOr<MaxPool> MaxPool2d(const Tensor& x,
                                  const Pool2dOptions& options);
// kOutOfRange: an index is outside its plane.
absl::StatusOr<Tensor> MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                                     const Shape& input_shape);

absl::StatusOr<Tensor> AvgPool2d(const Tensor& x, const Pool2dOptions& options);
absl::StatusOr<Tensor> AvgPool2dGrad(const Tensor& dy, const Shape& input_shape,
                                     const Pool2dOptions& options);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_POOL_H_
