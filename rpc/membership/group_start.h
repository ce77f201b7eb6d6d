// The common start of the workers of a job with a world size.

#ifndef HAWSER_RPC_MEMBERSHIP_GROUP_START_H_
#define HAWSER_RPC_MEMBERSHIP_GROUP_START_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "store/store.h"

namespace hawser::rpc {

// Waits until all workers of the job have registered and know each other. Rank
// 0 collects the records of all ranks, publishes them as a roster, collects the
// arrivals of those that have read it, and then lets all of them start. If a
// worker is replaced meanwhile, rank 0 publishes a new roster. A worker that is
// replaced later starts at once, and knows the others from the membership log.
// The cost of a worker other than rank 0 does not grow with their number, but
// for the bytes of the roster.
//
// Keys, below "rpc/<job>/start/":
//
//   roster                 a GroupRoster
//   <rank>/<incarnation>   set when this worker has read a roster with it
//   started                the incarnation of a rank 0 whose group has started
//
// Not thread-safe.
class GroupStart {
 public:
  struct Options {
    // A worker that has registered.
    WorkerInfo self;
    int world_size = 0;
    std::string job;
    // Both must outlive this object.
    store::Store* store = nullptr;
    const WorkerDirectory* records = nullptr;
    // Runs with each roster, before the worker arrives.
    std::function<void(const std::vector<WorkerInfo>& workers)> on_roster;
    // Runs once if the group has not started after `note_after`, with what this
    // worker waits for: "ranks 1, 3 of 4". May be null.
    std::function<void(const std::string& what)> on_waiting = nullptr;
    absl::Duration note_after = absl::Seconds(2);
  };

  explicit GroupStart(Options options);

  // Blocks until the group has started. kDeadlineExceeded names the ranks that
  // are missing; kUnavailable if the store does not reply at `deadline`, by the
  // machine's clock. Other errors of the store are returned unchanged.
  absl::Status Run(async::MonotonicTime deadline);

 private:
  using Values = std::vector<std::string>;

  // For rank 0.
  absl::Status Lead(async::MonotonicTime deadline);
  absl::Status Publish(const std::vector<WorkerInfo>& workers,
                       async::MonotonicTime deadline);
  // For the others.
  absl::Status Follow(async::MonotonicTime deadline);
  absl::StatusOr<std::vector<WorkerInfo>> ParseRoster(
      const std::string& value) const;
  bool IsIn(const std::vector<WorkerInfo>& roster) const;

  absl::Status Arrive(async::MonotonicTime deadline);
  absl::Status Set(const std::string& key, const std::string& value,
                   async::MonotonicTime deadline);
  std::string ArrivalKey(const WorkerInfo& worker) const;
  // Returns the result of `change`, or the error of a missed deadline.
  template <class T>
  async::Result<T> Await(const async::Future<T>& change,
                         async::MonotonicTime deadline);
  absl::Status MissedDeadline() const;
  // Returns the ranks that have not registered, as text: "1, 3". kUnavailable
  // if the store does not reply.
  absl::StatusOr<std::string> MissingRanks() const;
  void NoteWaiting();

  const Options options_;
  const std::string prefix_;
  MembershipLog log_;
  bool arrived_ = false;
  // Time of on_waiting; kNever once it has run.
  async::MonotonicTime note_at_ = async::kNever;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_GROUP_START_H_
