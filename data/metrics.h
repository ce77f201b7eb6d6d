// Measures of a model's predictions.

#ifndef HAWSER_DATA_METRICS_H_
#define HAWSER_DATA_METRICS_H_

#include <span>

#include "absl/status/statusor.h"

namespace hawser::data {

// Area under the ROC curve: the probability that a random sample with label 1
// has a higher score than a random one with label 0. A pair of equal scores
// counts half. Exact, by the ranks of the scores. Scores may be probabilities
// or logits. O(n log n).
//
//   kInvalidArgument  the sizes differ, a label is neither 0 nor 1, a score is
//                     not finite, or all labels are equal.
absl::StatusOr<double> Auc(std::span<const float> scores,
                           std::span<const float> labels);

// Square root of the mean squared difference.
//
//   kInvalidArgument  the sizes differ or are 0.
absl::StatusOr<double> Rmse(std::span<const float> predictions,
                            std::span<const float> targets);

}  // namespace hawser::data

#endif  // HAWSER_DATA_METRICS_H_
