#include "data/weighted_random_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/epoch_random.h"

namespace hawser::data {
namespace {

// Sums of weights in a binary tree. Its root is node 1, the children of node i
// are 2i and 2i + 1, and the leaves are the weights. A sum is always computed
// from its children, so it is 0 exactly if all weights below it are.
class SumTree {
 public:
  explicit SumTree(std::span<const double> weights)
      : first_leaf_(std::bit_ceil(weights.size())), sums_(2 * first_leaf_) {
    std::copy(weights.begin(), weights.end(),
              sums_.begin() + static_cast<ptrdiff_t>(first_leaf_));
    for (size_t node = first_leaf_ - 1; node > 0; --node) Add(node);
  }

  double total() const { return sums_[1]; }

  // The leaf in which `point`, in [0, total()), lies if all weights are put
  // side by side. Rounding may shift the bounds, but the weight is never 0.
  size_t Find(double point) const {
    size_t node = 1;
    while (node < first_leaf_) {
      node *= 2;
      const double left = sums_[node];
      if (point >= left && sums_[node + 1] > 0) {
        point -= left;
        ++node;
      }
    }
    return node - first_leaf_;
  }

  // Sets the weight of a leaf to 0.
  void Remove(size_t leaf) {
    size_t node = first_leaf_ + leaf;
    sums_[node] = 0;
    for (node /= 2; node > 0; node /= 2) Add(node);
  }

 private:
  void Add(size_t node) { sums_[node] = sums_[2 * node] + sums_[2 * node + 1]; }

  const size_t first_leaf_;
  std::vector<double> sums_;
};

absl::Status CheckOptions(const WeightedRandomSamplerOptions& options) {
  int64_t num_positive = 0;
  for (size_t i = 0; i < options.weights.size(); ++i) {
    const double weight = options.weights[i];
    if (!(weight >= 0) || std::isinf(weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weight of sample ", i, " is ", weight,
                       "; it must be finite and not negative"));
    }
    num_positive += weight > 0 ? 1 : 0;
  }
  if (num_positive == 0) {
    return absl::InvalidArgumentError("all weights are 0");
  }
  if (std::isinf(SumTree(options.weights).total())) {
    return absl::InvalidArgumentError("the sum of the weights is not finite");
  }
  if (options.num_samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_samples is ", options.num_samples, "; it must be 1 or more"));
  }
  if (!options.replacement && options.num_samples > num_positive) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_samples is ", options.num_samples, ", but only ",
                     num_positive, " samples have a weight above 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WeightedRandomSampler> WeightedRandomSampler::Create(
    WeightedRandomSamplerOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  return WeightedRandomSampler(std::move(options));
}

WeightedRandomSampler::WeightedRandomSampler(
    WeightedRandomSamplerOptions options)
    : options_(std::make_shared<const WeightedRandomSamplerOptions>(
          std::move(options))) {}

std::vector<int64_t> WeightedRandomSampler::Indices(int64_t epoch) const {
  EpochRandom random(options_->seed, epoch);
  SumTree tree(options_->weights);
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(options_->num_samples));
  for (int64_t i = 0; i < options_->num_samples; ++i) {
    const size_t drawn = tree.Find(random.Uniform() * tree.total());
    indices.push_back(static_cast<int64_t>(drawn));
    if (!options_->replacement) tree.Remove(drawn);
  }
  return indices;
}

}  // namespace hawser::data
