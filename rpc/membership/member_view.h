// The members of a job, as the events of its log describe them.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_VIEW_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_VIEW_H_

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "proto/rpc.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"

namespace hawser::rpc {

// One worker's view. When it reads the event that it joined itself, it reports
// all members as joined, ordered by rank; later ones as they join. It reports
// departures from the beginning on.
//
// Malformed events, repeated ones, and departures reported by a departed worker
// change nothing. Not thread-safe.
class MemberView {
 public:
  MemberView(WorkerInfo self, MemberCallback on_event);

  // Applies the next event of the log. Returns the member that joined by it
  // after this worker, if any.
  std::optional<Incarnation> Apply(const v1::MembershipEvent& event);

  const WorkerInfo& self() const { return self_; }
  // With this worker, from its joined event on.
  const absl::flat_hash_map<Incarnation, WorkerInfo>& members() const {
    return members_;
  }
  bool departed(Incarnation worker) const { return departed_.contains(worker); }
  // Whether this worker has joined and not departed.
  bool is_member() const { return !in_past_ && !departed(self_.incarnation); }

 private:
  void EndPast();
  void Remove(MemberEvent::Kind kind, const v1::WorkerDeparture& departure);

  const WorkerInfo self_;
  const MemberCallback on_event_;
  absl::flat_hash_map<Incarnation, WorkerInfo> members_;
  absl::flat_hash_set<Incarnation> departed_;
  // True until the event that this worker joined is read.
  bool in_past_ = true;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_VIEW_H_
