#ifndef HAWSER_NN_LOSS_H_
#define HAWSER_NN_LOSS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "nn/reduction.h"
#include "tensor/tensor.h"

namespace hawser::nn {

// Losses, differentiable with respect to their first argument, as PyTorch
// defines them. Targets get no gradient; they have the shape and dtype of the
// first argument unless said otherwise.
//
// kInvalidArgument: shapes, dtypes or options do not fit; named.

struct ClassLossOptions {
  Reduction reduction = Reduction::kMean;
  // A label whose elements count for nothing, also not in the mean. (PyTorch
  // ignores -100 unless told otherwise; here it is an error like any other
  // label that is no class.)
  std::optional<int64_t> ignored_label = std::nullopt;
  // [c]: how much each class counts; the mean is weighted too. Undefined: 1.
  Tensor class_weights = {};
  // Of CrossEntropyLoss: the share of the target that is spread evenly over all
  // classes, in [0, 1].
  double label_smoothing = 0;
};

// -log softmax(logits)[label]. logits [n, c, ...], labels i64 [n, ...], which
// is also the shape without reduction. The mean over no label is NaN, with a
// gradient of 0.
//
// kOutOfRange: a label is not in [0, c).
absl::StatusOr<Tensor> CrossEntropyLoss(const Tensor& logits,
                                        const Tensor& labels,
                                        const ClassLossOptions& options = {});

// The same from log-probabilities; there is no label smoothing.
absl::StatusOr<Tensor> NllLoss(const Tensor& log_probabilities,
                               const Tensor& labels,
                               const ClassLossOptions& options = {});

// (x - y)^2
absl::StatusOr<Tensor> MseLoss(const Tensor& x, const Tensor& y,
                               Reduction reduction = Reduction::kMean);

// |x - y|
absl::StatusOr<Tensor> L1Loss(const Tensor& x, const Tensor& y,
                              Reduction reduction = Reduction::kMean);

// With d = |x - y|: d^2 / (2 beta) below beta, else d - beta / 2. beta above 0.
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

// y (log y - x) for log-probabilities x and probabilities y, 0 where y is 0.
// kMean is over elements, as PyTorch's; divide kSum by the batch size for the
// divergence per row.
absl::StatusOr<Tensor> KlDivLoss(const Tensor& x, const Tensor& y,
                                 Reduction reduction = Reduction::kMean);

}  // namespace hawser::nn

#endif  // HAWSER_NN_LOSS_H_
