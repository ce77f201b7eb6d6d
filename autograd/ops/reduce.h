// Differentiable reductions. Shapes, dtypes and errors: tensor/ops/reduce.h.
#ifndef HAWSER_AUTOGRAD_OPS_REDUCE_H_
#define HAWSER_AUTOGRAD_OPS_REDUCE_H_

#include "absl/status/statusor.h"
#include "tensor/ops/reduce.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::DimList;
using tensor::DimSpan;

absl::StatusOr<Tensor> Sum(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);
absl::StatusOr<Tensor> Mean(const Tensor& a, DimSpan dims = {},
                            bool keepdim = false);
// Equal extremes share the gradient evenly.
absl::StatusOr<Tensor> Max(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);
absl::StatusOr<Tensor> Min(const Tensor& a, DimSpan dims = {},
                           bool keepdim = false);

inline absl::StatusOr<Tensor> Sum(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return autograd::Sum(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Mean(const Tensor& a, DimList dims,
                                   bool keepdim = false) {
  return autograd::Mean(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Max(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return autograd::Max(a, DimSpan(dims.begin(), dims.size()), keepdim);
}
inline absl::StatusOr<Tensor> Min(const Tensor& a, DimList dims,
                                  bool keepdim = false) {
  return autograd::Min(a, DimSpan(dims.begin(), dims.size()), keepdim);
}

absl::StatusOr<Tensor> SumTo(const Tensor& a, const tensor::Shape& shape);

// The gradient is 0 for elements of 0, and finite even if the norm underflows.
// For p = infinity, the largest magnitudes share it evenly.
absl::StatusOr<Tensor> Norm(const Tensor& a, double p = 2);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_REDUCE_H_
