// Reductions over dims of a tensor.
//
// `dims` are distinct and may be negative; empty means all of them. A reduced
// dim is left out of the result, or has size 1 there with `keepdim`. The result
// has the dtype of `a`; sums of f16 and bf16 are taken in f32 (f32 sums in
// blocks, so that the error grows with the logarithm of the count).
//
// Sum of nothing is 0 and Mean of nothing NaN; Max, Min and ArgMax of nothing
// are kInvalidArgument. bool is kInvalidArgument everywhere, integers for Mean
// and Norm.
#ifndef HAWSER_TENSOR_OPS_REDUCE_H_
#define HAWSER_TENSOR_OPS_REDUCE_H_

#include <cstdint>
#include <initializer_list>
#include <span>

#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

using DimSpan = std::span<const int64_t>;
using DimList = std::initializer_list<int64_t>;

absl::StatusOr<Tensor> Sum(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);
absl::StatusOr<Tensor> Mean(const Tensor& a, DimSpan dims = {},
                            bool keepdim = false);
// NaN where any element is.
absl::StatusOr<Tensor> Max(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);
absl::StatusOr<Tensor> Min(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);

inline absl::StatusOr<Tensor> Sum(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return Sum(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Mean(const Tensor& a, DimList dims,
                                   bool keepdim = false) {
  return Mean(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Max(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return Max(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Min(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return Min(a, DimSpan(dims.begin(), dims.size()), keepdim);
}

// i64: where along `dim` the maximum is; the first of equals, and the first NaN
// if there is one.
absl::StatusOr<Tensor> ArgMax(const Tensor& a, int64_t dim,
                              bool keepdim = false);

// The inverse of broadcasting: sums `a` over the dims by which `shape` was
// stretched to a.shape(). Returns `a` itself where the shapes are equal.
absl::StatusOr<Tensor> SumTo(const Tensor& a, const Shape& shape);

// (sum |x|^p)^(1/p) over all elements, rank 0; p > 0, infinity for the largest
// magnitude.
absl::StatusOr<Tensor> Norm(const Tensor& a, double p = 2);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_REDUCE_H_
