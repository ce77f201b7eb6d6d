// Threads for the watches of a store whose calls block.

#ifndef HAWSER_STORE_WATCH_THREADS_H_
#define HAWSER_STORE_WATCH_THREADS_H_

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"

namespace hawser::store::internal {

// Runs each watch of a store on a thread of its own, which ends with the watch.
// Thread-safe. Destroy it before anything that the watches use.
class WatchThreads {
 public:
  using Values = std::vector<std::string>;

  // A watch as its thread sees it. Thread-safe.
  class Watch {
   public:
    // True once nobody waits for the result: end soon, with any result.
    const std::atomic<bool>& cancelled() const { return cancelled_; }

    // Blocks until `deadline`, or until the watch is cancelled.
    void PauseUntil(async::MonotonicTime deadline);

   private:
    friend class WatchThreads;
    friend class Interruptible;

    void Cancel();

    std::atomic<bool> cancelled_ = false;
    async::Mutex mutex_;
    async::CondVar changed_;
    // Of the call in progress; null for none.
    absl::AnyInvocable<void()> interrupt_ ABSL_GUARDED_BY(mutex_);
  };

  // A call that a watch makes, while this lives: if the watch is cancelled,
  // `interrupt` makes the call end. It runs once at most, in any thread, and
  // under a lock, so it must not block. One at a time for each watch.
  class Interruptible {
   public:
    Interruptible(Watch* watch, absl::AnyInvocable<void()> interrupt);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

   private:
    Watch* const watch_;
  };

  // Waits for a change and returns the values of a watch.
  using Body = absl::AnyInvocable<absl::StatusOr<Values>(Watch& watch)>;

  WatchThreads() = default;
  // Calls Stop.
  ~WatchThreads() { Stop(); }
  WatchThreads(const WatchThreads&) = delete;
  WatchThreads& operator=(const WatchThreads&) = delete;

  // Runs `body` on a new thread, in which the future then completes. If the
  // future is cancelled, so is the watch.
  async::Future<Values> Start(Body body);

  // Cancels all watches, whose futures get kCancelled, and waits for their
  // threads. Watches started later end at once. Idempotent.
  void Stop();

 private:
  struct Running {
    std::shared_ptr<Watch> watch;
    std::thread thread;
  };

  // Joins threads that have ended.
  void Reap();

  async::Mutex mutex_;
  async::CondVar ended_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Running> running_ ABSL_GUARDED_BY(mutex_);
  // Threads that do nothing more.
  std::vector<std::thread> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_WATCH_THREADS_H_
