#include "data/sequential_sampler.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/epoch_random.h"

namespace hawser::data {

absl::StatusOr<SequentialSampler> SequentialSampler::Create(
    int64_t dataset_count) {
  if (dataset_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset_count is ", dataset_count, "; it cannot be negative"));
  }
  return SequentialSampler(dataset_count);
}

std::vector<int64_t> SequentialSampler::Indices(int64_t epoch) const {
  return EpochOrder(dataset_count_, std::nullopt, epoch);
}

}  // namespace hawser::data
