// A worker's lease and its view of the members of its job.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/executor.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {

// One worker's part in the membership of its job. Every heartbeat interval:
//
// 1. reads new events of the log, and reports them;
// 2. renews its own lease;
// 3. looks at the leases of the members after it, in the order of ranks, up to
//    the second that is fresh, and of those that it found stalled
//    before, and declares lost, by an event, whose lease stalled for
//    `silent_limit`.
//
// So every member is watched by others, also by none that ever talked to it,
// and a round costs a constant number of small reads and one write per worker,
// whatever their number. Of neighbours that die together each pair is found
// a second after the one before it. While the store does not answer nobody is
// declared lost.
//
// Reports by a worker already declared lost are ignored. If two workers report
// each other, the first log entry wins, so all workers agree on the survivor.
//
// A worker begins with the members that there are when it joins, each reported
// as joined, by rank; from then on all report the same events. Of those that
// went before it reports that they did, for they may be known from elsewhere,
// but not that they joined.
//
// Thread-safe.
class Membership {
 public:
  // Runs in the order of the log, one at a time, on `executor`.
  using OnEvent = std::function<void(const MemberEvent& event)>;

  struct Options {
    WorkerInfo self;
    LivenessOptions liveness;
    // These outlive the membership.
    async::Clock* clock = nullptr;
    async::Executor* executor = nullptr;
    MembershipLog* log = nullptr;
  };

  Membership(Options options, OnEvent on_event);
  // Does Stop.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Begins the rounds, the first at once. The lease and the event that this
  // worker joined must be in the log.
  void Start();

  // Declares `worker` lost by an event, in a round that begins now, or at
  // Start.
  void ReportSuspect(const WorkerInfo& worker, std::string reason);

  // Reads the log in a round that begins now, or at Start. Runs `done` on
  // `executor` when the events there were are reported, or could not be read;
  // drops it if Stop comes first.
  void CatchUp(absl::AnyInvocable<void() &&> done);

  // Whether this process may have been declared lost without knowing: it
  // stalled for `silent_limit` less two intervals, and has not since reported
  // all events that the log had. False before Start.
  bool MaybeFenced(async::MonotonicTime now) const;

  // How many events were applied.
  uint64_t num_events() const;
  // Whether the last round reached the store.
  bool store_reachable() const;

  // No OnEvent is running or will run after it, nor what CatchUp was given; so
  // not from one. Waits for a round that is under way. Idempotent.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_
