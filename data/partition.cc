#include "data/partition.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hawser::data {

absl::Status Partition::Validate() const {
  if (num_replicas < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_replicas is ", num_replicas, "; it must be 1 or more"));
  }
  if (rank < 0 || rank >= num_replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " is not in 0 to ", num_replicas - 1));
  }
  return absl::OkStatus();
}

int64_t Partition::Count(int64_t total) const {
  const bool pad = !drop_last && total % num_replicas != 0;
  return total / num_replicas + (pad ? 1 : 0);
}

std::vector<int64_t> Partition::Of(std::span<const int64_t> list) const {
  const auto total = static_cast<int64_t>(list.size());
  const int64_t count = Count(total);
  std::vector<int64_t> part;
  part.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = rank + i * num_replicas;
    part.push_back(list[static_cast<size_t>(position % total)]);
  }
  return part;
}

}  // namespace hawser::data
