// Differentiable table look-ups with dense gradients of the table. Shapes,
// dtypes and errors: tensor/ops/embedding.h.
#ifndef HAWSER_AUTOGRAD_OPS_EMBEDDING_H_
#define HAWSER_AUTOGRAD_OPS_EMBEDDING_H_

#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

using tensor::BagMode;

absl::StatusOr<Tensor> Embedding(const Tensor& weight, const Tensor& ids);
absl::StatusOr<Tensor> EmbeddingBag(const Tensor& weight, const Tensor& ids,
                                    const Tensor& offsets, BagMode mode);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_EMBEDDING_H_
