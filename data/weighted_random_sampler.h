// Samples of a data set, drawn with given weights.

#ifndef HAWSER_DATA_WEIGHTED_RANDOM_SAMPLER_H_
#define HAWSER_DATA_WEIGHTED_RANDOM_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

struct WeightedRandomSamplerOptions {
  // The weight of each sample of the data set. Only their ratios matter; a
  // sample with weight 0 is never drawn.
  std::vector<double> weights;
  // Samples of an epoch.
  int64_t num_samples = 0;
  // Draws each sample from all. Otherwise an epoch has a sample at most once:
  // each is drawn from those that are left, by their weights.
  bool replacement = true;
  uint64_t seed = 0;
};

// Weighted random samples, with the rules of PyTorch's WeightedRandomSampler.
// The numbers are drawn from (seed, epoch), by another generator than
// PyTorch's. For n weights, an epoch takes O(n + num_samples log n) time.
// Copies share the weights.
//
// Immutable; thread-safe.
class WeightedRandomSampler {
 public:
  // kInvalidArgument: no weights, or one that is negative or not finite; a sum
  // of the weights that is 0 or not finite; num_samples below 1, or, without
  // replacement, above the number of weights that are not 0.
  static absl::StatusOr<WeightedRandomSampler> Create(
      WeightedRandomSamplerOptions options);

  // Samples of an epoch.
  int64_t count() const { return options_->num_samples; }

  // The `count()` indices of `epoch`, in the order to visit them.
  std::vector<int64_t> Indices(int64_t epoch) const;

 private:
  explicit WeightedRandomSampler(WeightedRandomSamplerOptions options);

  std::shared_ptr<const WeightedRandomSamplerOptions> options_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_WEIGHTED_RANDOM_SAMPLER_H_
