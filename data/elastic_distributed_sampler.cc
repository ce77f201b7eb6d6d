#include "data/elastic_distributed_sampler.h"

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/epoch_random.h"
#include "data/partition.h"

namespace hawser::data {
namespace {

Partition PartitionOf(const ElasticDistributedSamplerOptions& options) {
  return {.num_replicas = options.num_replicas, .rank = options.rank};
}

}  // namespace

absl::StatusOr<ElasticDistributedSampler> ElasticDistributedSampler::Create(
    const ElasticDistributedSamplerOptions& options) {
  RETURN_IF_ERROR(PartitionOf(options).Validate());
  if (options.dataset_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset_count is ", options.dataset_count, "; it cannot be negative"));
  }
  if (options.start_index < 0 || options.start_index > options.dataset_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("start_index ", options.start_index, " is not in 0 to ",
                     options.dataset_count));
  }
  return ElasticDistributedSampler(options);
}

int64_t ElasticDistributedSampler::count() const {
  return PartitionOf(options_).Count(options_.dataset_count -
                                     options_.start_index);
}

std::vector<int64_t> ElasticDistributedSampler::Indices(int64_t epoch) const {
  const std::vector<int64_t> order = EpochOrder(
      options_.dataset_count,
      options_.shuffle ? std::optional(options_.seed) : std::nullopt, epoch);
  return PartitionOf(options_).Of(
      std::span(order).subspan(static_cast<size_t>(options_.start_index)));
}

int64_t ElasticDistributedSampler::NextStartIndex(int64_t visited) const {
  if (visited >= count()) return options_.dataset_count;
  return options_.start_index + visited * options_.num_replicas;
}

}  // namespace hawser::data
