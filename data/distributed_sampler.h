#ifndef HAWSER_DATA_DISTRIBUTED_SAMPLER_H_
#define HAWSER_DATA_DISTRIBUTED_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

struct DistributedSamplerOptions {
  int64_t dataset_count = 0;
  // Number of trainers that share the data set, and the rank of this one.
  int64_t num_replicas = 1;
  int64_t rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;
  // Truncates the data set to a multiple of `num_replicas`, instead of padding
  // it with samples from its front.
  bool drop_last = false;
};

// Partition of a data set among trainers, per epoch. The parts have equal sizes
// and are disjoint except for padding. If shuffled, the order differs in every
// epoch, and all trainers derive it from (seed, epoch), whatever their number.
// Trainer r gets positions r, r + num_replicas, r + 2 num_replicas, ... of that
// order, as with PyTorch's DistributedSampler (data/partition.h).
//
// Immutable; thread-safe.
class DistributedSampler {
 public:
  // kInvalidArgument: num_replicas below 1, rank outside [0, num_replicas), or
  // a negative dataset_count.
  static absl::StatusOr<DistributedSampler> Create(
      const DistributedSamplerOptions& options);

  // Samples per trainer and epoch.
  int64_t count() const;

  // The `count()` indices of `epoch`, in the order to visit them.
  std::vector<int64_t> Indices(int64_t epoch) const;

 private:
  explicit DistributedSampler(const DistributedSamplerOptions& options)
      : options_(options) {}

  DistributedSamplerOptions options_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_DISTRIBUTED_SAMPLER_H_
