#include "data/distributed_sampler.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/epoch_random.h"
#include "data/partition.h"

namespace hawser::data {
namespace {

Partition PartitionOf(const DistributedSamplerOptions& options) {
  return {.num_replicas = options.num_replicas,
          .rank = options.rank,
          .drop_last = options.drop_last};
}

}  // namespace

absl::StatusOr<DistributedSampler> DistributedSampler::Create(
    const DistributedSamplerOptions& options) {
  RETURN_IF_ERROR(PartitionOf(options).Validate());
  if (options.dataset_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset_count is ", options.dataset_count, "; it cannot be negative"));
  }
  return DistributedSampler(options);
}

int64_t DistributedSampler::count() const {
  return PartitionOf(options_).Count(options_.dataset_count);
}

std::vector<int64_t> DistributedSampler::Indices(int64_t epoch) const {
  const std::vector<int64_t> order = EpochOrder(
      options_.dataset_count,
      options_.shuffle ? std::optional(options_.seed) : std::nullopt, epoch);
  return PartitionOf(options_).Of(order);
}

}  // namespace hawser::data
