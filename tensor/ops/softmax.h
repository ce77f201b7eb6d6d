// Softmax, its logarithm, and the cross entropy of a softmax, with gradients.
//
// Floating-point tensors; computed in f32 for f16 and bf16, with the maximum
// subtracted first. `dim` may be negative.
//
// kInvalidArgument: dtypes, shapes or dim do not fit. kOutOfRange: a label is
// not in [0, c); the message names it and its position.
#ifndef HAWSER_TENSOR_OPS_SOFTMAX_H_
#define HAWSER_TENSOR_OPS_SOFTMAX_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

absl::StatusOr<Tensor> Softmax(const Tensor& x, int64_t dim);
absl::StatusOr<Tensor> LogSoftmax(const Tensor& x, int64_t dim);

// From the output `y` of the forward pass and its gradient.
absl::StatusOr<Tensor> SoftmaxGrad(const Tensor& y, const Tensor& dy,
                                   int64_t dim);
absl::StatusOr<Tensor> LogSoftmaxGrad(const Tensor& y, const Tensor& dy,
                                      int64_t dim);

struct CrossEntropy {
  Tensor loss;   // rank 0: mean over rows of -log softmax(logits)[label]
  Tensor probs;  // [n, c]: softmax(logits), for the gradient
};

// logits [n, c], labels i64 [n]. The mean over no rows is NaN.
absl::StatusOr<CrossEntropy> SoftmaxCrossEntropy(const Tensor& logits,
                                                 const Tensor& labels);

// The gradient of the logits; `dloss` is that of the loss, one element.
absl::StatusOr<Tensor> SoftmaxCrossEntropyGrad(const Tensor& probs,
                                               const Tensor& labels,
                                               const Tensor& dloss);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_SOFTMAX_H_
