// Records by which the ranks of a mesh find each other.

#ifndef HAWSER_COLLECTIVES_GLOO_RANK_RECORD_H_
#define HAWSER_COLLECTIVES_GLOO_RANK_RECORD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace hawser::collectives {

// Where a rank listens for one other: addresses in Gloo's form, of at most 255
// bytes.
struct PairAddresses {
  std::vector<char> data = {};
  std::vector<char> control = {};
};

struct RankRecord {
  // The name of the rank's machine, of at most 255 bytes.
  std::string machine = "";
  // By rank; empty for itself.
  std::vector<PairAddresses> addresses = {};
};

// Writes the record of rank `rank` to the store, and waits for those of the
// others. Returns all. There are as many ranks as addresses in `own`.
//
//   kInvalidArgument   the name of the machine is too long, or a rank has
//                      joined a group of another size; names it.
//   kDeadlineExceeded  names the ranks that have not come within `timeout`.
// and those of the store.
absl::StatusOr<std::vector<RankRecord>> ExchangeRecords(store::Store& store,
                                                        int rank,
                                                        const RankRecord& own,
                                                        absl::Duration timeout);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_RANK_RECORD_H_
