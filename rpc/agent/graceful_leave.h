// The graceful leave of a worker from its job.

#ifndef HAWSER_RPC_AGENT_GRACEFUL_LEAVE_H_
#define HAWSER_RPC_AGENT_GRACEFUL_LEAVE_H_

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
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/lease_observer.h"
#include "store/barrier.h"

namespace hawser::rpc {

// Goes by steps, each on the agent's control executor, with waits in between
// that end, all of them, at one deadline of the agent's clock, and hold no
// thread; a barrier holds one of that executor, for a tenth of a second at a
// time. A step that asks the store takes kStoreCallTimeout longer, at most.
//
// Without a world size:
//
// 1. Own calls end.
// 2. The services drain, the last one attached first; own calls end again.
// 3. Users' calls are refused. The record goes, the others are told that this
//    worker left by the event, and those that talk with it by itself.
// 4. The services learn of it; inbound calls end.
//
// With a world size:
//
// 1. Own calls end; all workers pass a barrier.
// 2. The services drain, while all workers still serve.
// 3. Rounds: own calls end; all pass a barrier and say there whether they made
// a call since
//    the last round; until nobody did.
// 4. The worker's record goes; all pass a last barrier, so that nobody stops
// while
//    another still needs it.
//
// A barrier ends with the name of a worker that is found lost meanwhile. A
// store that does not answer is asked again until the deadline.
//
// Thread-safe. Lives on in what it waits for, and uses the agent only as long
// as that runs.
class Agent::Impl::GracefulLeave
    : public std::enable_shared_from_this<GracefulLeave> {
 public:
  // For an agent that has joined.
  explicit GracefulLeave(Impl* impl);
  GracefulLeave(const GracefulLeave&) = delete;
  GracefulLeave& operator=(const GracefulLeave&) = delete;

  // Once, and not after the agent has stopped.
  void Begin();

  // Completes, on the control executor or in Abandon, when the worker may stop.
  // After a drain that failed the leave goes on, and then gives its error.
  const async::Future<void>& future() const { return future_; }

  // The agent stops: kCancelled, if it has not ended. No step begins after it.
  void Abandon();

 private:
  using Step = void (GracefulLeave::*)(const absl::Status&);
  // "2 own calls have not ended".
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
  // Those that talk with this worker hear from itself that it leaves. Ready
  // when they have no more calls here, or do not answer.
  async::Future<void> NotifyPeers();
  void AwaitInboundCalls(const absl::Status& ignored);
  void End(const absl::Status& status);

  // With a world size. Arrives at `barrier` with `payload`;
  // `next` runs once all have, or with what keeps them. The payloads of all are
  // in payloads_ then, unless `payload` is empty.
  void EnterBarrier(std::string_view barrier, std::string_view payload,
                    Step next);
  void PollBarrier(const absl::Status& status);
  absl::StatusOr<bool> CheckBarrier(bool late);
  absl::Status CheckLeases();
  void EnterQuiescenceBarrier(const absl::Status& status);
  void OnQuiescenceBarrier(const absl::Status& status);
  void LeaveStaticGroup();
  // The error of a worker that was found lost.
  absl::Status Interruption() const;

  Impl& impl_;
  const std::shared_ptr<Shared> shared_;
  async::Promise<void> promise_;
  // Of many readers, so that none of them takes the result away.
  const async::Future<void> future_ = promise_.future();
  // Set by Begin.
  async::MonotonicTime deadline_ = async::kNever;

  // Of the step under way.
  absl::Status status_;
  // How many services are left to drain.
  size_t num_undrained_ = 0;
  // With a world size: all workers, and the rounds so far.
  std::vector<WorkerInfo> all_;
  std::vector<store::Barrier::Participant> participants_;
  int round_ = 0;
  uint64_t calls_seen_ = 0;
  // Of the barrier under way.
  std::optional<store::Barrier> barrier_;
  std::string payload_;
  std::vector<std::string> payloads_;
  bool arrived_ = false;
  bool last_barrier_ = false;
  Step after_barrier_ = nullptr;
  LeaseObserver leases_;
  async::MonotonicTime next_lease_check_;

  async::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<async::TimerId> timer_ ABSL_GUARDED_BY(mutex_);
  // Waits are numbered; the current one has a step that comes next.
  uint64_t num_waits_ ABSL_GUARDED_BY(mutex_) = 0;
  Step next_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Late late_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_GRACEFUL_LEAVE_H_
