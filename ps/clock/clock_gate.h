// Requests that wait for the clocks of a table's workers.

#ifndef HAWSER_PS_CLOCK_CLOCK_GATE_H_
#define HAWSER_PS_CLOCK_CLOCK_GATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "net/per_peer_quota.h"
#include "ps/clock/decoded_push.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/host_handle.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"

namespace hawser::v1 {
class AdvanceClockRequest;
class JoinClockRequest;
class LeaveClockRequest;
}  // namespace hawser::v1

namespace hawser::ps {

// The state of a table's clock on one server, for metrics.
struct ClockNumbers {
  static constexpr size_t kStalenessBuckets = 33;

  // The clocks below are complete.
  int64_t completed = 0;
  int64_t num_workers = 0;
  // Requests that wait now.
  int64_t num_parked = 0;
  // Pulls that were served, by the number of clocks by which they were ahead of
  // the slowest worker; the last element counts all from there on.
  std::array<int64_t, kStalenessBuckets> pulls_by_staleness = {};
};

// Lets the requests of a clocked table through when the clocks of its workers
// permit it, and applies the pushes of a synchronous table. Until then a
// request is parked: it occupies no thread, and ends with its call or a little
// before its deadline, with kDeadlineExceeded that names the workers it waits
// for.
//
// Errors of all requests: those of WorkerClocks; kResourceExhausted: too many
// requests are parked; kUnavailable: the table was closed.
//
// Thread-safe. Promises are completed without locks.
class ClockGate : public std::enable_shared_from_this<ClockGate> {
 public:
  // `table` has clocks. Workers that it has already are looked up when a
  // request waits: their ends may have been missed.
  ClockGate(std::shared_ptr<LoggedTable> table,
            std::shared_ptr<net::PerPeerQuota> quota,
            std::shared_ptr<rpc::HostHandle> host);

  const std::shared_ptr<LoggedTable>& table() const { return table_; }

  // Completes when the caller may pull.
  async::Future<void> AwaitPull(const rpc::MethodCall& call, WorkerTime time);

  // Of a table with bounded staleness: whether the caller may push. Call
  // Proceed after the push was applied.
  absl::Status CheckPush(const rpc::MethodCall& call, uint64_t sequence,
                         WorkerTime time) const;
  // Of a synchronous table: completes when the push was applied.
  async::Future<void> Push(const rpc::MethodCall& call, DecodedPush push);

  // Returns the caller's clock.
  absl::StatusOr<int64_t> Join(const rpc::MethodCall& call,
                               const v1::JoinClockRequest& request);
  absl::Status Advance(const rpc::MethodCall& call,
                       const v1::AdvanceClockRequest& request);
  // Completes when the caller has left.
  async::Future<void> Leave(const rpc::MethodCall& call,
                            const v1::LeaveClockRequest& request);
  // A worker makes no more calls.
  void Lose(rpc::Incarnation worker);

  // Applies the pushes of complete clocks, and answers the requests that need
  // not wait any more.
  void Proceed();

  // Ends all parked requests.
  void Close(const absl::Status& status);

  ClockNumbers Numbers() const;

 private:
  enum class Kind { kPull, kPush, kLeave };
  // A request that waits.
  struct Parked {
    Kind kind;
    rpc::Incarnation worker{};
    WorkerTime time;
    async::Promise<void> promise;
    net::PerPeerQuota::Reservation reservation;
    std::optional<async::TimerId> timer = std::nullopt;
    rpc::Cancellation::Registration cancellation = {};
  };
  // In the order in which pushes are applied.
  struct PushKey {
    int64_t clock;
    std::string name;
    rpc::Incarnation worker;
    uint64_t sequence;

    friend auto operator<=>(const PushKey&, const PushKey&) = default;
  };
  // A push that is not applied yet, and the calls that wait for it.
  struct PendingPush {
    DecodedPush push;
    net::PerPeerQuota::Reservation reservation;
    std::vector<uint64_t> calls = {};
  };
  using PendingPushes = std::map<PushKey, PendingPush>;
  using Answers = std::vector<std::pair<Parked, absl::Status>>;

  absl::Status WithPrefix(const absl::Status& status) const;
  // Parks a request; the push that one waits for is counted instead of it.
  // kResourceExhausted: too many are.
  absl::StatusOr<uint64_t> Park(const rpc::MethodCall& call, Kind kind,
                                WorkerTime time, async::Future<void>& future)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a parked request with its call, or before its deadline.
  void Watch(uint64_t id, const rpc::MethodCall& call);
  void OnDeadline(uint64_t id);
  // Takes a parked request, if it is still there, to answer it.
  void Take(uint64_t id, const absl::Status& status, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(uint64_t id, const absl::Status& status);
  // Answers requests that were taken, and forgets them.
  void Send(Answers& answers);
  // Whether a request other than a push has ended: its answer.
  std::optional<absl::Status> AnswerOf(const Parked& parked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountPull(WorkerTime time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeReady(Answers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the pushes that will not be applied.
  void DropPushes(Answers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the pushes of the next clock, if it is complete and no other thread
  // applies pushes.
  bool TakeClock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies the pushes that were taken.
  void ApplyClock();
  absl::Status ApplyPush(const DecodedPush& push);
  // Looks up the workers that were there when the table was recovered.
  void LookUpWorkers();
  void LookUp(rpc::Incarnation incarnation, const std::string& name);

  const std::shared_ptr<LoggedTable> table_;
  WorkerClocks& clocks_;
  const std::shared_ptr<net::PerPeerQuota> quota_;
  const std::shared_ptr<rpc::HostHandle> host_;

  mutable async::Mutex mutex_;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Parked> parked_ ABSL_GUARDED_BY(mutex_);
  PendingPushes pending_ ABSL_GUARDED_BY(mutex_);
  // The pushes of the clock that a thread applies; it alone removes them.
  bool applies_ ABSL_GUARDED_BY(mutex_) = false;
  PendingPushes applied_ ABSL_GUARDED_BY(mutex_);
  std::map<rpc::Incarnation, std::string> unseen_ ABSL_GUARDED_BY(mutex_);
  bool looks_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<int64_t, ClockNumbers::kStalenessBuckets> pulls_by_staleness_
      ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_CLOCK_GATE_H_
