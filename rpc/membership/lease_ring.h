// Choice of the members whose leases a worker watches.

#ifndef HAWSER_RPC_MEMBERSHIP_LEASE_RING_H_
#define HAWSER_RPC_MEMBERSHIP_LEASE_RING_H_

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_view.h"

namespace hawser::rpc {

// The next two members after this one, by rank, in a circle. Two kinds of
// members do not count as one of the two:
//   - suspects, whose leases had lapsed when last seen, so that the members
//     before a dead one watch those after it as well. They are not watched;
//   - newcomers, which joined within `settling_time`: they cannot declare the
//     members after them lost yet. They are watched.
//
// Not thread-safe.
class LeaseRing {
 public:
  // `view` must outlive the ring.
  LeaseRing(const MemberView* view, absl::Duration settling_time)
      : view_(*view), settling_time_(settling_time) {}

  // Records that `worker` joined at `now`.
  void AddNewcomer(Incarnation worker, async::MonotonicTime now);
  // The view has changed.
  void OnViewChanged() { leases_.reset(); }

  void AddSuspect(Incarnation worker);
  // The lease was renewed, or its member is no longer one.
  void RemoveSuspect(Incarnation worker);
  // The suspects that are still members.
  std::vector<Incarnation> Suspects();

  bool IsNewcomer(Incarnation worker) const {
    return newcomers_.contains(worker);
  }
  // The members that follow `worker` in the circle, up to this one.
  std::vector<Incarnation> MembersAfter(Incarnation worker) const;

  // At most 16. Empty unless this worker is a member.
  const std::vector<Incarnation>& LeasesToWatch(async::MonotonicTime now);

 private:
  // Position in the circle, which begins after this worker.
  std::tuple<bool, WorkerId, uint64_t> PositionOf(
      const WorkerInfo& worker) const;
  std::vector<Incarnation> Choose() const;

  const MemberView& view_;
  const absl::Duration settling_time_;
  absl::flat_hash_set<Incarnation> suspects_;
  // With the times when this worker learned of them.
  absl::flat_hash_map<Incarnation, async::MonotonicTime> newcomers_;
  // The last choice, until members, suspects or newcomers change.
  std::optional<std::vector<Incarnation>> leases_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_LEASE_RING_H_
