// Joining tensors along a dim, and cutting one into pieces.
//
// `dim` may be negative. kInvalidArgument: no tensor at all, shapes, dtypes or
// devices that differ, a dim out of range, sizes that do not add up; named.
#ifndef HAWSER_TENSOR_OPS_JOIN_H_
#define HAWSER_TENSOR_OPS_JOIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// The tensors agree in every dim but `dim`.
absl::StatusOr<Tensor> Concat(std::span<const Tensor> tensors, int64_t dim);
// The tensors agree in shape; the result has a new dim at `dim`.
absl::StatusOr<Tensor> Stack(std::span<const Tensor> tensors, int64_t dim);
// Views of `a`; the sizes add up to a.dim(dim).
absl::StatusOr<std::vector<Tensor>> Split(const Tensor& a,
                                          std::span<const int64_t> sizes,
                                          int64_t dim);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_JOIN_H_
