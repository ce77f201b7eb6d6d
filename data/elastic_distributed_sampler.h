// Partition of the rest of an epoch among trainers.

#ifndef HAWSER_DATA_ELASTIC_DISTRIBUTED_SAMPLER_H_
#define HAWSER_DATA_ELASTIC_DISTRIBUTED_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

struct ElasticDistributedSamplerOptions {
  int64_t dataset_count = 0;
  // Number of samples of the epoch that all trainers together visited before
  // the restart. In [0, dataset_count].
  int64_t start_index = 0;
  // Number of trainers since the restart, and the rank of this one.
  int64_t num_replicas = 1;
  int64_t rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;
};

// Partition of an epoch that a restarted job takes up again, also with another
// number of trainers. From the start index on, the order of the epoch is
// divided as by a DistributedSampler, of which this is a copy if the start
// index is 0.
//
// The order of an epoch depends on (seed, epoch) alone. While trainers take
// their samples in step, those of the first k steps are the first
// k * num_replicas of that order, without a gap. So the jobs before and after
// any number of restarts visit each sample exactly once, except for padding at
// the end of the epoch. PyTorch's ElasticDistributedSampler instead shuffles
// the samples whose index is not below the start index, which repeats and
// loses samples if the order was shuffled before the restart; without
// shuffling, both give the same.
//
// Immutable; thread-safe.
class ElasticDistributedSampler {
 public:
  // kInvalidArgument: num_replicas below 1, rank outside [0, num_replicas), a
  // negative dataset_count, or start_index outside [0, dataset_count].
  static absl::StatusOr<ElasticDistributedSampler> Create(
      const ElasticDistributedSamplerOptions& options);

  // Samples per trainer in the rest of the epoch.
  int64_t count() const;

  // The `count()` indices of the rest of `epoch`, in the order to visit them.
  std::vector<int64_t> Indices(int64_t epoch) const;

  // The start index after each trainer visited the first `visited` of its
  // indices, for a checkpoint. dataset_count once all were visited.
  int64_t NextStartIndex(int64_t visited) const;

 private:
  explicit ElasticDistributedSampler(
      const ElasticDistributedSamplerOptions& options)
      : options_(options) {}

  ElasticDistributedSamplerOptions options_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_ELASTIC_DISTRIBUTED_SAMPLER_H_
