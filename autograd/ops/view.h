// Differentiable views: the methods of Tensor with gradients. The results share
// memory with `a` if those of the methods do. Errors are those of the methods.
#ifndef HAWSER_AUTOGRAD_OPS_VIEW_H_
#define HAWSER_AUTOGRAD_OPS_VIEW_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::Shape;

// At most one size may be -1. Copies if the memory cannot be viewed in this
// shape.
absl::StatusOr<Tensor> Reshape(const Tensor& a, const Shape& shape);
absl::StatusOr<Tensor> Transpose(const Tensor& a, int dim0, int dim1);
// dims[i] is the dim of `a` that becomes dim i.
absl::StatusOr<Tensor> Permute(const Tensor& a, std::span<const int> dims);
// a[start], a[start + step], ... before `end` along `dim`.
absl::StatusOr<Tensor> Slice(const Tensor& a, int dim, int64_t start,
                             int64_t end, int64_t step = 1);
absl::StatusOr<Tensor> Narrow(const Tensor& a, int dim, int64_t start,
                              int64_t length);
// Removes `dim`.
absl::StatusOr<Tensor> Select(const Tensor& a, int dim, int64_t index);
absl::StatusOr<Tensor> Expand(const Tensor& a, const Shape& shape);
absl::StatusOr<Tensor> Squeeze(const Tensor& a);
absl::StatusOr<Tensor> Squeeze(const Tensor& a, int dim);
absl::StatusOr<Tensor> Unsqueeze(const Tensor& a, int dim);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_VIEW_H_
