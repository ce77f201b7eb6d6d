// Rows of a table, one by one or in bags.
//
// weight [rows, d]; ids are i64 or i32. Gradients of 16 bits are added up in
// f32 and rounded once. kOutOfRange: an id is not in [0, rows); the message
// names it and its position. kInvalidArgument: shapes or dtypes do not fit.
#ifndef HAWSER_TENSOR_OPS_EMBEDDING_H_
#define HAWSER_TENSOR_OPS_EMBEDDING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// ids [...] gives [..., d].
absl::StatusOr<Tensor> Embedding(const Tensor& weight, const Tensor& ids);
// The dense gradient [rows, d] of the weight; equal ids add up.
absl::StatusOr<Tensor> EmbeddingGrad(const Tensor& dout, const Tensor& ids,
                                     int64_t rows);

struct EmbeddingBagResult {
  Tensor out;      // [bags, d]
  Tensor max_ids;  // kMax only, for the gradient: i64 [bags, d]
};

// ids [n]; offsets [bags], the dtype of ids, starts at 0 and does not fall: bag
// i is ids[offsets[i]] up to the start of the next. An empty bag gives zeros.
absl::StatusOr<EmbeddingBagResult> EmbeddingBag(const Tensor& weight,
                                                const Tensor& ids,
                                                const Tensor& offsets,
                                                BagMode mode);
// `max_ids` is that of the forward pass; read for kMax only.
absl::StatusOr<Tensor> EmbeddingBagGrad(const Tensor& dout, const Tensor& ids,
                                        const Tensor& offsets,
                                        const Tensor& max_ids, BagMode mode,
                                        int64_t rows);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_EMBEDDING_H_
