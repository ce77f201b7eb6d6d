// The division of a list of samples among trainers.

#ifndef HAWSER_DATA_PARTITION_H_
#define HAWSER_DATA_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace hawser::data {

// Trainer `rank` of `num_replicas`, with PyTorch's rules: it gets the positions
// rank, rank + num_replicas, rank + 2 num_replicas, ... of the list. All
// trainers get the same number of samples: the list is padded by repeating it
// from its front, several times if it is short, or, with `drop_last`, cut to a
// multiple of `num_replicas`.
struct Partition {
  int64_t num_replicas = 1;
  int64_t rank = 0;
  bool drop_last = false;

  // kInvalidArgument: num_replicas below 1, or rank outside [0, num_replicas).
  absl::Status Validate() const;

  // Samples that each trainer gets of a list of `total`.
  int64_t Count(int64_t total) const;

  // The samples of this trainer.
  std::vector<int64_t> Of(std::span<const int64_t> list) const;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_PARTITION_H_
