// Observer that measures how long each lease has not been renewed.

#ifndef HAWSER_RPC_MEMBERSHIP_LEASE_OBSERVER_H_
#define HAWSER_RPC_MEMBERSHIP_LEASE_OBSERVER_H_

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Observes the counts of leases by its own monotonic clock, so that clocks of
// different machines are never compared. If a lease was not observed for
// `max_gap`, because observer or store stalled, its observation starts over,
// since a renewal may have been missed. Not thread-safe.
class LeaseObserver {
 public:
  explicit LeaseObserver(absl::Duration max_gap) : max_gap_(max_gap) {}

  // Records that the lease has `count` now; returns how long it has not
  // changed.
  absl::Duration Observe(Incarnation owner, const std::string& count,
                         async::MonotonicTime now) {
    auto [it, is_new] = seen_.try_emplace(owner, Seen{count, now, now});
    Seen& seen = it->second;
    if (is_new) return absl::ZeroDuration();
    if (seen.count != count ||
        async::TimeBetween(seen.last_look, now) > max_gap_) {
      seen = Seen{count, now, now};
    }
    seen.last_look = now;
    return async::TimeBetween(seen.since, now);
  }

  // Drops all leases except those of `owners`.
  void Keep(const absl::flat_hash_set<Incarnation>& owners) {
    absl::erase_if(seen_, [&](const auto& entry) {
      return !owners.contains(entry.first);
    });
  }

 private:
  struct Seen {
    std::string count;
    async::MonotonicTime since;
    async::MonotonicTime last_look;
  };

  const absl::Duration max_gap_;
  absl::flat_hash_map<Incarnation, Seen> seen_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_LEASE_OBSERVER_H_
