// Schedule of the leases in a table of keys.

#ifndef HAWSER_STORE_HASH_LEASE_SCHEDULE_H_
#define HAWSER_STORE_HASH_LEASE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace hawser::store::internal {

// Decides which leases have expired. Time is counted in ticks of `kTick` that
// the owner reports, so it stands still while the process of the owner does:
// renewals that arrived meanwhile are read before the next ticks.
//
// A lease that was not renewed for its lifetime expires, unless machines or
// network are slow, so that its owner may live. That shows in the others:
//   - the renewals of more than three in four leases are overdue, or
//   - the last renewals of one in ten came late, as on a machine whose workers
//     get the processor in turn. The last renewals of owners that die together
//     came in time.
// Leases then live proportionally longer, up to four lifetimes.
//
// Renewing a lease takes constant time; a tick with an overdue lease looks at
// all leases. Not thread-safe.
class LeaseSchedule {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(100);

  // Starts or renews the lease of `key`.
  void Renew(const std::string& key, absl::Duration lifetime);
  // Ends the lease of `key` if it has one. The key does not expire.
  void End(const std::string& key);
  bool empty() const { return leases_.empty(); }

  // Counts a tick; returns the keys whose leases have expired with it. They
  // have no lease any more.
  std::vector<std::string> Tick();

 private:
  struct Lease {
    // In ticks.
    uint64_t renewed = 0;
    uint64_t lifetime = 0;
    // Time between the last two renewals.
    uint64_t gap = 0;
    // The tick at which it is checked; not later than its expiry.
    uint64_t due = 0;
  };

  // Factor by which leases live longer than their lifetimes, from 1 to 4.
  double Extension() const;
  // `lease` is that of `key`, and not scheduled.
  void Schedule(const std::string& key, Lease& lease, uint64_t due);

  uint64_t now_ = 0;
  absl::flat_hash_map<std::string, Lease> leases_;
  // The leases with the ticks at which they are checked.
  std::set<std::pair<uint64_t, std::string>> due_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_HASH_LEASE_SCHEDULE_H_
