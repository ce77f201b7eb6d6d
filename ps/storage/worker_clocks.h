// Clocks of the workers that train a table.

#ifndef HAWSER_PS_STORAGE_WORKER_CLOCKS_H_
#define HAWSER_PS_STORAGE_WORKER_CLOCKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "ps/storage/consistency.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/push_id.h"
#include "ps/storage/worker_time.h"
#include "rpc/identity/worker_info.h"

namespace hawser::v1 {
class ClockEvent;
class TableClocks;
class TableClocks_Worker;
}  // namespace hawser::v1

namespace hawser::ps {

// The clocks of the workers of one table, as one server sees them. A worker is
// at clock c here once it has said so and all its pushes of earlier clocks have
// arrived, in whatever order the messages came. A clock is complete once all
// workers are past it, or have left or are lost; before that, as many workers
// must have joined as the largest number that one of them expects. A worker
// that joins begins at the first clock that is not complete.
//
// With synchronous consistency pushes arrive first and are applied when their
// clock is complete; otherwise they are applied when they arrive.
//
// A state machine without time, files or messages: its inputs are events, which
// its owner logs, and the pushes. Thread-safe.
class WorkerClocks {
 public:
  static constexpr size_t kMaxWorkers = 4096;
  // Clocks that a worker may be ahead of what is complete, or of its pushes.
  static constexpr int64_t kMaxAhead = 1024;

  // The largest clock, so that sums of clocks are in range.
  static constexpr int64_t kMaxClock = int64_t{1} << 60;

  // The clocks below `first_clock` are complete.
  explicit WorkerClocks(Consistency consistency, int64_t first_clock = 0)
      : consistency_(consistency),
        completed_(first_clock),
        applied_(first_clock) {}

  // --- Events.

  // Whether the event has an effect now: false for a repeated one.
  //
  //   kInvalidArgument     a number is out of range.
  //   kFailedPrecondition  its worker has not joined, or has left.
  //   kResourceExhausted   too many workers, or a clock that is too far ahead.
  absl::StatusOr<bool> Check(const v1::ClockEvent& event) const;
  // Takes an event that Check has accepted.
  void Apply(const v1::ClockEvent& event);

  // --- Pushes.

  enum class PushState {
    kNew,
    // Only with synchronous consistency.
    kArrived,
    kApplied,
  };

  // kInvalidArgument     the worker has said that it sent all pushes of that
  //                      clock.
  // kFailedPrecondition  the worker has not joined, or the push is too old.
  // kResourceExhausted   the clock is too far ahead.
  absl::StatusOr<PushState> FindPush(const PushId& push, WorkerTime time) const;
  // With synchronous consistency: the push waits until its clock is complete.
  void PushArrived(const PushId& push, WorkerTime time);
  void PushApplied(const PushId& push, WorkerTime time);
  // Whether a push that has arrived will be applied: false if its worker left,
  // or was lost, before it completed that clock.
  bool Counts(rpc::Incarnation worker, WorkerTime time) const;
  // The pushes of the clock ClockToApply() were applied.
  void FinishClock();

  // --- Answers.

  // Whether a pull at this time may be served.
  //
  //   kFailedPrecondition  the worker has not joined; or, with synchronous
  //                        consistency, pushes of this clock are applied.
  absl::StatusOr<bool> CanPull(rpc::Incarnation worker, WorkerTime time) const;
  // Whether the worker has left this membership, or does not have it any more.
  bool HasLeft(rpc::Incarnation worker, uint64_t join) const;
  // At which the worker is; that of a worker that has just joined is at least
  // completed().
  int64_t ClockOf(rpc::Incarnation worker) const;
  // The clocks below are complete.
  int64_t completed() const;
  // The clocks below are complete, and all their pushes applied.
  int64_t applied() const;
  // With synchronous consistency: the clock applied(), if it is complete.
  std::optional<int64_t> ClockToApply() const;
  int64_t num_workers() const;
  // Workers that have joined and not left: incarnations and names.
  std::vector<std::pair<rpc::Incarnation, std::string>> Workers() const;
  // The workers that a pull at this time waits for, for errors: "for 'w2' at
  // clock 3 to reach clock 7, 'w4' at clock 5 to reach clock 7".
  std::string WaitsFor(rpc::Incarnation worker, WorkerTime time) const;

  // --- Files.

  // What survives the end of the server: with synchronous consistency, pushes
  // that were not applied have not arrived.
  v1::TableClocks ToProto() const;
  // kInvalidArgument: names the field that is out of range.
  static absl::StatusOr<std::unique_ptr<WorkerClocks>> FromProto(
      Consistency consistency, const v1::TableClocks& proto);

 private:
  struct Step {
    // Unset: the worker has not completed it.
    std::optional<int64_t> announced;
    int64_t arrived = 0;
    int64_t applied = 0;
  };
  struct Worker {
    std::string name;
    uint64_t join = 0;
    int64_t clock = 0;
    // The clock at which it leaves.
    std::optional<int64_t> leaves_at;
    bool left = false;
    PushWindow arrived;
    PushWindow applied;
    // From the first step on that may still change, or, with synchronous
    // consistency, whose pushes may not have been applied.
    std::map<int64_t, Step> steps;
  };
  using Departure = std::pair<rpc::Incarnation, uint64_t>;

  bool synchronous() const {
    return consistency_.mode == Consistency::Mode::kSynchronous;
  }
  // Null if the worker does not have this membership, or has left.
  const Worker* Find(rpc::Incarnation worker, uint64_t join) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> CheckJoin(const v1::ClockEvent& event) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckAhead(const Worker& worker, int64_t clock) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Join(const v1::ClockEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a membership; its complete clocks count.
  void Depart(rpc::Incarnation id, const Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the worker's clock, and then that of the table.
  void Advance(rpc::Incarnation id, Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static v1::TableClocks_Worker ToProto(const Worker& worker);
  static absl::StatusOr<Worker> FromProto(const v1::TableClocks_Worker& proto);

  const Consistency consistency_;
  mutable async::Mutex mutex_;
  // Also those that have left: a repeated join must not bring them back.
  std::map<rpc::Incarnation, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  // With synchronous consistency: memberships that have ended, with the clock
  // that they had reached, until the pushes of the clocks before are applied.
  std::map<Departure, int64_t> departed_ ABSL_GUARDED_BY(mutex_);
  int64_t completed_ ABSL_GUARDED_BY(mutex_);
  int64_t applied_ ABSL_GUARDED_BY(mutex_);
  int64_t highest_left_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whether as many workers have joined as they expected. Before that: how many
  // that is, and the names of those that have joined.
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t num_expected_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<std::string> joined_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_WORKER_CLOCKS_H_
