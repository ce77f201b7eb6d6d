#include "collectives/host/exchange.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace hawser::collectives {

absl::Status Exchange::WaitForStep(int rank, uint32_t step,
                                   async::MonotonicTime deadline) {
  RankState& state = region_.rank(rank);
  return wait_.Until([&] { return HasShown(rank, step); }, state.step,
                     state.sleepers, deadline,
                     [&] { return wait_.CheckRank(rank); },
                     [&] { return MissingRanks(step); });
}

absl::Status Exchange::MissingRanks(uint32_t step) const {
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != rank_ && !HasShown(rank, step)) missing.push_back(rank);
  }
  return wait_.LateError(std::move(missing));
}

}  // namespace hawser::collectives
