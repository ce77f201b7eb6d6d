// Samples of a data set in random order.

#ifndef HAWSER_DATA_RANDOM_SAMPLER_H_
#define HAWSER_DATA_RANDOM_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

struct RandomSamplerOptions {
  int64_t dataset_count = 0;
  // Samples of an epoch; `dataset_count` if not given.
  std::optional<int64_t> num_samples = std::nullopt;
  // Draws each sample from the whole data set. Otherwise an epoch consists of
  // passes over the data set, each in an order of its own, the last of which
  // may be incomplete.
  bool replacement = false;
  uint64_t seed = 0;
};

// Random samples, with the rules of PyTorch's RandomSampler. The numbers are
// drawn from (seed, epoch), by another generator than PyTorch's.
//
// Immutable; thread-safe.
class RandomSampler {
 public:
  // kInvalidArgument: dataset_count or num_samples below 1.
  static absl::StatusOr<RandomSampler> Create(
      const RandomSamplerOptions& options);

  // Samples of an epoch.
  int64_t count() const {
    return options_.num_samples.value_or(options_.dataset_count);
  }

  // The `count()` indices of `epoch`, in the order to visit them.
  std::vector<int64_t> Indices(int64_t epoch) const;

 private:
  explicit RandomSampler(const RandomSamplerOptions& options)
      : options_(options) {}

  RandomSamplerOptions options_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_RANDOM_SAMPLER_H_
