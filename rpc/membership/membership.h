// A worker's lease, and its view of the members of its job.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/member_view.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {

// Membership protocol of one worker. It
//
// 1. renews its own lease in every heartbeat interval;
// 2. watches the log, and reports new events;
// 3. watches the leases of the two members after it, in the order of ranks, and
//    declares a member lost by an event when its lease lapses, `silent_limit`
//    after its last renewal, and then the members after it whose leases have
//    lapsed too. Members that joined lately do not count as one of the two.
//
// Every member is thus monitored by others, even if they never exchanged a
// message with it. An idle worker costs the store one renewal per interval and
// one waiting call, whatever the number of workers; an event costs one reply
// per worker, and events within a tenth of a second share it. While the store
// does not reply, no member is declared lost, nor until this worker was in
// contact with the store for `silent_limit` again.
//
// Reports by a worker already declared lost are ignored. If two workers report
// each other, the first log entry wins, so all workers agree on the survivor.
//
// A worker first reports the current members, at the time when it joins, as
// joined, ordered by rank. From then on all workers report the same events. For
// workers that departed earlier it reports the departure, since they may be
// known from elsewhere, but not that they joined.
//
// Thread-safe.
class Membership {
 public:
  struct Options {
    WorkerInfo self;
    LivenessOptions liveness;
    // Must outlive the membership.
    async::Clock* clock = nullptr;
    async::Executor* executor = nullptr;
    MembershipLog* log = nullptr;
  };

  // `on_event` runs on `executor`, sequentially, in the order of the log.
  Membership(Options options, MemberCallback on_event);
  // Calls Stop.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Starts the rounds, the first at once. This worker's lease and its joined
  // event must already be in the store.
  void Start();

  // Declares `worker` lost by an event, in a round that starts now, or at
  // Start.
  void ReportSuspect(const WorkerInfo& worker, std::string reason);

  // Reads the log in a round that starts now, or at Start. Runs `done` on
  // `executor` when the events in the log are reported, or could not be read.
  // Drops it if Stop is called first.
  void CatchUp(absl::AnyInvocable<void() &&> done);

  // Whether this process may have been declared lost without knowing it: it
  // stalled for at least `silent_limit` minus two intervals, and has not
  // reported all events of the log since. False before Start.
  bool MaybeFenced(async::MonotonicTime now) const;

  // Number of events applied.
  uint64_t num_events() const;
  // Whether the last round reached the store.
  bool store_reachable() const;
  // Time since this worker's lease was renewed, or since Start: above
  // `silent_limit`, other workers may declare it lost.
  absl::Duration lease_age(async::MonotonicTime now) const;

  // After it returns, neither `on_event` nor a callback of CatchUp is running
  // or will run; must not be called from one. Waits for the current round.
  // Idempotent.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_H_
