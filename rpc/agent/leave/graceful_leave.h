// The graceful leave of a worker from its job.

#ifndef HAWSER_RPC_AGENT_LEAVE_GRACEFUL_LEAVE_H_
#define HAWSER_RPC_AGENT_LEAVE_GRACEFUL_LEAVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/leave/leaving_member.h"
#include "rpc/agent/service.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/worker_info.h"
#include "store/barrier.h"

namespace hawser::rpc {

// Runs in steps on the agent's control executor. Between steps it waits without
// holding a thread. All waits end at one deadline of the agent's clock. A step
// that accesses the store takes at most kStoreCallTimeout longer.
//
// Without a world size:
//
// 1. This worker's own calls end.
// 2. The services drain, in the reverse order of their start. Own calls end
//    again.
// 3. The agent rejects calls of users. The worker's record is removed, an event
//    records that it left, and its peers are notified.
// 4. Service::OnLeft runs. Inbound calls end.
//
// With a world size:
//
// 1. Own calls end. All workers pass a barrier.
// 2. The services drain while all workers still serve.
// 3. Rounds: own calls end, then all workers pass a barrier whose payload says
//    whether the worker made a call since the last round. The rounds end when
//    none of them did.
// 4. All workers pass a last barrier, so that none stops while another still
//    needs it. The worker's record is removed. The coordinator, whose process
//    may host the store, does so when all others have left.
//
// The worker with the lowest rank coordinates the barriers. A barrier fails
// with the name of a worker that is found lost meanwhile. If the store does not
// reply, it is tried again until the deadline, once per heartbeat interval.
//
// Thread-safe. Keeps itself alive while it waits, and uses the agent only
// behind its gate.
class GracefulLeave : public std::enable_shared_from_this<GracefulLeave> {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    // Both must outlive the use of the leave behind the gate.
    LeavingMember* member = nullptr;
    const std::vector<Service*>* services = nullptr;
    // Whether the job has a world size.
    bool static_group = false;
    // Pause before a call to the store is repeated.
    absl::Duration heartbeat_interval;
    // Of the whole leave.
    absl::Duration timeout;
  };

  // For a worker that has joined.
  explicit GracefulLeave(Options options);
  GracefulLeave(const GracefulLeave&) = delete;
  GracefulLeave& operator=(const GracefulLeave&) = delete;

  // Call once, before the agent stops.
  void Begin();

  // Completes, on the control executor or in Abandon, when the worker may stop.
  // If a service fails to drain, the leave continues, and then returns its
  // error. Errors of Agent::Leave.
  const async::Future<void>& future() const { return future_; }

  // The agent stops: ends the leave with kCancelled, unless it has ended. No
  // step begins afterwards.
  void Abandon();

 private:
  using Step = void (GracefulLeave::*)(const absl::Status&);
  // Returns the text of a timeout: "2 own calls have not ended".
  using Late = absl::AnyInvocable<std::string()>;

  // Runs `next` on the control executor with the result of `done`, or with
  // kDeadlineExceeded and the text of `late`.
  void Await(const async::Future<void>& done, Late late, Step next);
  void OnDeadline();
  void Resume(uint64_t wait, absl::Status status);
  void Finish(absl::Status status);
  bool ended();

  void AwaitOwnCalls(Step next);
  void OnOwnCallsEnded(const absl::Status& status);
  void OnAllLeave(const absl::Status& status);
  void DrainNext(const absl::Status& status);

  // Without a world size.
  void LeaveDynamicGroup(const absl::Status& status);
  void AwaitInboundCalls(const absl::Status& ignored);
  void End(const absl::Status& status);

  // With a world size. Arrives at `barrier` with `payload`; `next` runs with OK
  // once all workers have arrived, or with an error. all_quiet_ then says
  // whether no payload is kBusy.
  void EnterBarrier(std::string_view barrier, std::string_view payload,
                    Step next);
  void Arrive(const absl::Status& status);
  void AwaitArrivals();
  void OnArrivals(const absl::Status& status);
  void CompleteBarrier(const absl::Status& status);
  void AwaitCompletion();
  void OnCompletion(const absl::Status& status);
  // Returns kDeadlineExceeded with the names of the workers that are missing,
  // or the error of a store that does not reply.
  absl::Status Explain(const absl::Status& status);
  void PassBarrier(const absl::Status& status);
  // Runs `step` after a pause, because the store replied to its call with
  // `error`.
  void TryAgain(const absl::Status& error, Step step);
  async::Future<void> Pause();
  // Makes sure that the end of the leave ends the wait `watch` for the store.
  template <class T>
  void CancelAtEnd(const async::Future<T>& watch);
  // Whether this worker is the coordinator.
  bool coordinates() const;

  void EnterQuiescenceBarrier(const absl::Status& status);
  void OnQuiescenceBarrier(const absl::Status& status);
  void LeaveStaticGroup();
  void OnLastBarrier(const absl::Status& status);
  void Withdraw(const absl::Status& ignored);

  const Options options_;
  AgentState& state_;
  LeavingMember& member_;
  async::Promise<void> promise_;
  const async::Future<void> future_ = promise_.future();
  // Set by Begin.
  async::MonotonicTime deadline_ = async::kNever;

  // Used by one step at a time. The first error, which does not end the leave.
  absl::Status status_;
  size_t num_undrained_ = 0;
  // With a world size: all workers.
  std::vector<WorkerInfo> all_;
  std::vector<store::Barrier::Participant> participants_;
  int round_ = 0;
  uint64_t calls_seen_ = 0;
  async::Future<void> peer_lost_;
  // The current barrier, and its wait for the store.
  std::optional<store::Barrier> barrier_;
  std::string payload_;
  async::Future<std::vector<std::string>> arrivals_;
  async::Future<std::string> completion_;
  // Error of the last call to the store.
  absl::Status store_error_;
  bool all_quiet_ = false;
  bool last_barrier_ = false;
  Step after_barrier_ = nullptr;

  async::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<async::TimerId> timer_ ABSL_GUARDED_BY(mutex_);
  // Waits are numbered. The current one has a next step.
  uint64_t num_waits_ ABSL_GUARDED_BY(mutex_) = 0;
  Step next_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Late late_ ABSL_GUARDED_BY(mutex_);
  // Ends the wait for the store of the current barrier.
  absl::AnyInvocable<void()> cancel_watch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_LEAVE_GRACEFUL_LEAVE_H_
