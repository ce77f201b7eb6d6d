#include "data/distributed_sampler.h"

#include <numeric>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::data {

absl::StatusOr<DistributedSampler> DistributedSampler::Create(
    const DistributedSamplerOptions& options) {
  if (options.num_replicas < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_replicas is ", options.num_replicas, "; it must be 1 or more"));
  }
  if (options.rank < 0 || options.rank >= options.num_replicas) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", options.rank, " is not in 0 to ", options.num_replicas - 1));
  }
  if (options.dataset_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset_count is ", options.dataset_count, "; it cannot be negative"));
  }
  const int64_t n = options.dataset_count;
  const int64_t w = options.num_replicas;
  const int64_t count = options.drop_last ? n / w : (n + w - 1) / w;
  return DistributedSampler(options, count);
}

std::vector<int64_t> DistributedSampler::Indices(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(options_.dataset_count));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options_.shuffle) {
    // Fisher-Yates on raw generator output: every trainer must get the same
    // order, and the standard does not specify how std::shuffle uses the
    // generator.
    std::seed_seq seed{
        static_cast<uint32_t>(options_.seed),
        static_cast<uint32_t>(options_.seed >> 32),
        static_cast<uint32_t>(epoch),
        static_cast<uint32_t>(static_cast<uint64_t>(epoch) >> 32)};
    std::mt19937_64 bits(seed);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(bits() % i)]);
    }
  }
  std::vector<int64_t> mine;
  mine.reserve(static_cast<size_t>(count_));
  const auto n = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < count_; ++i) {
    const int64_t place = options_.rank + i * options_.num_replicas;
    mine.push_back(order[static_cast<size_t>(place % n)]);
  }
  return mine;
}

}  // namespace hawser::data
