// Differentiable concatenation and splitting. Shapes, dtypes and errors:
// tensor/ops/join.h.
#ifndef HAWSER_AUTOGRAD_OPS_JOIN_H_
#define HAWSER_AUTOGRAD_OPS_JOIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

absl::StatusOr<Tensor> Concat(std::span<const Tensor> tensors, int64_t dim);
absl::StatusOr<Tensor> Stack(std::span<const Tensor> tensors, int64_t dim);
// Returns views of `a`.
absl::StatusOr<std::vector<Tensor>> Split(const Tensor& a,
                                          std::span<const int64_t> sizes,
                                          int64_t dim);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_JOIN_H_
