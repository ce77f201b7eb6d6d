#include "data/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::data {
namespace {

absl::Status CheckSizes(std::span<const float> predictions,
                        std::span<const float> targets) {
  if (predictions.size() == targets.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      predictions.size(), " predictions for ", targets.size(), " targets"));
}

}  // namespace

absl::StatusOr<double> Auc(std::span<const float> scores,
                           std::span<const float> labels) {
  if (const absl::Status sizes = CheckSizes(scores, labels); !sizes.ok()) {
    return sizes;
  }
  double positive = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (labels[i] != 0 && labels[i] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", i, " is ", labels[i], ", not 0 or 1"));
    }
    if (!std::isfinite(scores[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("score ", i, " is ", scores[i]));
    }
    positive += labels[i];
  }
  const double negative = static_cast<double>(scores.size()) - positive;
  if (positive == 0 || negative == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the AUC of ", scores.size(),
                     " samples is not defined: it needs both labels"));
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double won = 0;  // Pairs in which the positive sample is higher.
  double negative_below = 0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    double ties = 0;
    double positive_ties = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]];
         ++end) {
      ties += 1;
      positive_ties += labels[order[end]];
    }
    const double negative_ties = ties - positive_ties;
    won += positive_ties * (negative_below + negative_ties / 2);
    negative_below += negative_ties;
  }
  return won / (positive * negative);
}

absl::StatusOr<double> Rmse(std::span<const float> predictions,
                            std::span<const float> targets) {
  if (const absl::Status sizes = CheckSizes(predictions, targets);
      !sizes.ok()) {
    return sizes;
  }
  if (targets.empty()) {
    return absl::InvalidArgumentError("the RMSE of 0 samples is not defined");
  }
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = static_cast<double>(predictions[i]) - targets[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(targets.size()));
}

}  // namespace hawser::data
