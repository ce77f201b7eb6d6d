// Reading and adding elements or slices by index.
//
// Indices are i64 or i32, on the device of `a`. Where equal indices add, sums
// of 16-bit elements are taken in f32 and rounded once; the order on a GPU is
// not fixed. kOutOfRange: an index is not in [0, size of dim); the message
// names it and its position. kInvalidArgument: shapes or dtypes do not fit.
#ifndef HAWSER_TENSOR_OPS_GATHER_H_
#define HAWSER_TENSOR_OPS_GATHER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// For dim 1 of three: out[i][j][k] = a[i][index[i][j][k]][k]. `index` has the
// rank of `a` and is nowhere larger but in `dim`.
absl::StatusOr<Tensor> Gather(const Tensor& a, int64_t dim,
                              const Tensor& index);
// A copy of `a` with out[i][index[i][j][k]][k] += src[i][j][k] for every
// element of `index`, which is nowhere larger than `src`, nor but in `dim`
// than `a`.
absl::StatusOr<Tensor> ScatterAdd(const Tensor& a, int64_t dim,
                                  const Tensor& index, const Tensor& src);

// The slices index[0], index[1], ... of `a` along `dim`; index [n].
absl::StatusOr<Tensor> IndexSelect(const Tensor& a, int64_t dim,
                                   const Tensor& index);
// A copy of `a` with slice j of `src` added to slice index[j].
absl::StatusOr<Tensor> IndexAdd(const Tensor& a, int64_t dim,
                                const Tensor& index, const Tensor& src);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_GATHER_H_
