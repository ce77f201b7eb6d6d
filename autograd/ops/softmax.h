// Differentiable softmax functions and losses. Shapes, dtypes and errors:
// tensor/ops/softmax.h.
#ifndef HAWSER_AUTOGRAD_OPS_SOFTMAX_H_
#define HAWSER_AUTOGRAD_OPS_SOFTMAX_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

absl::StatusOr<Tensor> Softmax(const Tensor& x, int64_t dim);
absl::StatusOr<Tensor> LogSoftmax(const Tensor& x, int64_t dim);

// Mean loss; rank 0.
absl::StatusOr<Tensor> SoftmaxCrossEntropy(const Tensor& logits,
                                           const Tensor& labels);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_SOFTMAX_H_
