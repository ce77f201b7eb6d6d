#ifndef HAWSER_NN_LOSS_H_
#define HAWSER_NN_LOSS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "nn/reduction.h"
#include "tensor/tensor.h"

namespace hawser::nn {

// Losses as in PyTorch, differentiable with respect to their first argument.
// Targets do not get a gradient. Unless documented otherwise, they have the
// shape and dtype of the first argument.
//
// kInvalidArgument: a shape, dtype or option is invalid; the message names it.

struct ClassLossOptions {
  Reduction reduction = Reduction::kMean;
  // Elements with this label contribute neither to the loss nor to the mean's
  // divisor. By default all labels must be classes, unlike in PyTorch, where
  // the default is -100.
  std::optional<int64_t> ignored_label = std::nullopt;
  // [c]: the weight of each class, also in the mean. Undefined: 1.
  Tensor class_weights = {};
  // Only for CrossEntropyLoss: the fraction of the target that is spread evenly
  // over all classes, in [0, 1].
  double label_smoothing = 0;
};

// -log softmax(logits)[label]. logits [n, c, ...], labels i64 [n, ...]. Without
// reduction the result has the shape of the labels. If all labels are ignored,
// the mean is NaN with a gradient of 0.
//
// kOutOfRange: a label is not in [0, c).
absl::StatusOr<Tensor> CrossEntropyLoss(const Tensor& logits,
                                        const Tensor& labels,
                                        const ClassLossOptions& options = {});

// The same from log-probabilities, without label smoothing.
absl::StatusOr<Tensor> NllLoss(const Tensor& log_probabilities,
                               const Tensor& labels,
                               const ClassLossOptions& options = {});

// (x - y)^2
absl::StatusOr<Tensor> MseLoss(const Tensor& x, const Tensor& y,
                               Reduction reduction = Reduction::kMean);

// |x - y|
absl::StatusOr<Tensor> L1Loss(const Tensor& x, const Tensor& y,
                              Reduction reduction = Reduction::kMean);

// With d = |x - y|: d^2 / (2 beta) if d < beta, else d - beta / 2. beta > 0.
absl::StatusOr<Tensor> SmoothL1Loss(const Tensor& x, const Tensor& y,
                                    double beta = 1,
                                    Reduction reduction = Reduction::kMean);

// delta times SmoothL1Loss with beta = delta.
absl::StatusOr<Tensor> HuberLoss(const Tensor& x, const Tensor& y,
                                 double delta = 1,
                                 Reduction reduction = Reduction::kMean);

// -(y log x + (1 - y) log(1 - x)) for probabilities x in [0, 1]; logarithms are
// at least -100.
absl::StatusOr<Tensor> BceLoss(const Tensor& x, const Tensor& y,
                               Reduction reduction = Reduction::kMean);

// The same for x = sigmoid(logits), without overflow. `positive_weight`, which
// broadcasts to the shape of y, multiplies the term of y; undefined: 1.
absl::StatusOr<Tensor> BceWithLogitsLoss(const Tensor& logits, const Tensor& y,
                                         Reduction reduction = Reduction::kMean,
                                         const Tensor& positive_weight = {});

// y (log y - x) for log-probabilities x and probabilities y; 0 where y is 0.
// kMean averages over elements, as in PyTorch. For the divergence per row,
// divide kSum by the batch size.
absl::StatusOr<Tensor> KlDivLoss(const Tensor& x, const Tensor& y,
                                 Reduction reduction = Reduction::kMean);

}  // namespace hawser::nn

#endif  // HAWSER_NN_LOSS_H_
