// Waiting of the ranks of a group for each other, and its end.

#ifndef HAWSER_COLLECTIVES_HOST_SHARED_WAIT_H_
#define HAWSER_COLLECTIVES_HOST_SHARED_WAIT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "collectives/host/region.h"

namespace hawser::collectives {

// One rank's view of whether its group still works, and its waiting on words of
// the region. A waiting thread spins for a bounded time, then sleeps. If there
// are more ranks than cores, it yields its core instead of spinning.
//
// Thread-safe. Errors are those of Backend.
class SharedWait {
 public:
  struct Options {
    int rank = 0;
    // Not all ranks can run at the same time.
    bool crowded = false;
    // Returns an error that names the rank if it has died. Null: it cannot.
    std::function<absl::Status(int rank, const std::string& name)> check_alive =
        nullptr;
    // As HostOptions.
    std::vector<int> numbers = {};
    std::function<absl::Status(const std::vector<int>& late)> late_error =
        nullptr;
  };

  SharedWait(const Region& region, Options options)
      : region_(region), options_(std::move(options)) {}

  int rank() const { return options_.rank; }
  // "rank 3".
  std::string NameOf(int rank) const;
  // kDeadlineExceeded for a wait for these ranks.
  absl::Status LateError(std::vector<int> late) const;
  const Region& region() const { return region_; }

  // Waits until `ready()`, which is read from the region. Whoever makes it true
  // changes `word` and calls Wake for it. `check` is called every 100 ms while
  // the thread sleeps: CheckRank of those that it waits for. Aborts the group
  // with an error of `check`, or after the deadline with `timeout_error()`, and
  // returns it.
  absl::Status Until(absl::FunctionRef<bool()> ready,
                     const std::atomic<uint32_t>& word,
                     std::atomic<uint32_t>& sleepers,
                     async::MonotonicTime deadline,
                     absl::FunctionRef<absl::Status()> check,
                     absl::FunctionRef<absl::Status()> timeout_error);
  // kUnavailable: the rank has died or left the group.
  absl::Status CheckRank(int rank) const;
  // This rank takes part no more. Others that wait for it get an error.
  void Leave();
  // One round of spinning. Returns false if the bounded time since `begin` has
  // passed.
  bool Pause(async::MonotonicTime begin) const;
  static void Wake(const std::atomic<uint32_t>& word,
                   const std::atomic<uint32_t>& sleepers);

  // Ends the waiting of all ranks, unless a rank did so before. Returns the
  // error for this rank: `status`, or the reason of the rank that was first.
  absl::Status Abort(const absl::Status& status);
  // OK until a rank has called Abort.
  absl::Status status() const {
    if (region_.header().aborted_by.load(std::memory_order_relaxed) == 0) {
      return absl::OkStatus();
    }
    return AbortStatus();
  }

 private:
  int NumberOf(int rank) const;
  // Returns true once `ready()` or the group is aborted.
  bool Spin(absl::FunctionRef<bool()> ready) const;
  absl::Status AbortStatus() const;
  // The sleeping threads of all ranks.
  void WakeAll() const;

  const Region region_;
  const Options options_;
  mutable async::Mutex mutex_;
  // The error of this rank's first Abort.
  absl::Status own_abort_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_SHARED_WAIT_H_
