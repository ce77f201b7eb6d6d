#include "collectives/host/exchange.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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
  return absl::DeadlineExceededError(
      absl::StrCat(missing.size() == 1 ? "rank " : "ranks ",
                   absl::StrJoin(missing, ", "), " did not take part in time"));
}

}  // namespace hawser::collectives
