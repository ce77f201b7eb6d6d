// The clock of one worker at one table, on the side of the worker.

#ifndef HAWSER_PS_CLOCK_CLIENT_CLOCK_H_
#define HAWSER_PS_CLOCK_CLIENT_CLOCK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "ps/storage/worker_time.h"

namespace hawser::ps {

// Gives requests their time, and counts the pushes that each server gets at
// each clock. A worker has one for each table, which all its handles share.
//
// The messages that tell the servers of a clock are held back while pulls of
// earlier clocks are under way: these must not see pushes of this clock.
//
// Thread-safe.
class ClientClock {
 public:
  // A clock that was reached, and what is told to the servers.
  struct Step {
    WorkerTime time;
    // Pushes of the clock before, by server.
    std::map<std::string, int64_t> pushes;
  };

  // Begins to join. Returns the number of the join. kAlreadyExists: the worker
  // has joined, or is joining.
  absl::StatusOr<uint64_t> BeginJoin();
  // The servers have accepted the join, at this clock.
  void Join(int64_t clock);
  // Ends the membership, also before Join. Returns its time; not joined if
  // there was none.
  WorkerTime Leave();

  // The time of a request, not joined if the worker is not. EndPull must
  // follow BeginPull. Errors: why an earlier push or advance failed.
  absl::StatusOr<WorkerTime> BeginPull();
  // The same for a pull of a later clock.
  void BeginPullAt(WorkerTime time);
  // Returns the clocks that the servers are to be told of now.
  std::vector<Step> EndPull(WorkerTime time);
  // `servers`: those that get a part of the push. Errors: why an earlier push
  // or advance failed.
  absl::StatusOr<WorkerTime> BeginPush(const std::vector<std::string>& servers);

  // Reaches the next clock. Returns the clocks that the servers are to be told
  // of now. kFailedPrecondition: the worker has not joined. Errors: why an
  // earlier push or advance failed.
  absl::StatusOr<std::vector<Step>> Advance();

  // A push or an advance of that time failed: the servers wait for it in vain,
  // so this clock does not go on.
  void Fail(WorkerTime time, const absl::Status& status);

  // The error after which the clock does not go on.
  absl::Status status() const;
  int64_t clock() const;

 private:
  std::vector<Step> TakeStepsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable async::Mutex mutex_;
  uint64_t joins_ ABSL_GUARDED_BY(mutex_) = 0;
  bool joining_ ABSL_GUARDED_BY(mutex_) = false;
  WorkerTime time_ ABSL_GUARDED_BY(mutex_);
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  // Of the present clock.
  std::map<std::string, int64_t> pushes_ ABSL_GUARDED_BY(mutex_);
  // Number of pulls under way, by join and clock.
  std::map<std::pair<uint64_t, int64_t>, int64_t> pulls_
      ABSL_GUARDED_BY(mutex_);
  // Clocks that the servers have not been told of.
  std::deque<Step> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_CLIENT_CLOCK_H_
