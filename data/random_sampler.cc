#include "data/random_sampler.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/epoch_random.h"

namespace hawser::data {

absl::StatusOr<RandomSampler> RandomSampler::Create(
    const RandomSamplerOptions& options) {
  if (options.dataset_count < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset_count is ", options.dataset_count, "; it must be 1 or more"));
  }
  if (options.num_samples.has_value() && *options.num_samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_samples is ", *options.num_samples, "; it must be 1 or more"));
  }
  return RandomSampler(options);
}

std::vector<int64_t> RandomSampler::Indices(int64_t epoch) const {
  EpochRandom random(options_.seed, epoch);
  const auto size = static_cast<size_t>(count());
  std::vector<int64_t> indices;
  indices.reserve(size);
  if (options_.replacement) {
    const auto bound = static_cast<uint64_t>(options_.dataset_count);
    while (indices.size() < size) {
      indices.push_back(static_cast<int64_t>(random.Below(bound)));
    }
    return indices;
  }
  while (indices.size() < size) {
    const std::vector<int64_t> pass =
        random.Permutation(options_.dataset_count);
    const size_t taken = std::min(pass.size(), size - indices.size());
    indices.insert(indices.end(), pass.begin(),
                   pass.begin() + static_cast<ptrdiff_t>(taken));
  }
  return indices;
}

}  // namespace hawser::data
