#ifndef HAWSER_ASYNC_THREAD_POOL_H_
#define HAWSER_ASYNC_THREAD_POOL_H_

#include <atomic>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "async/blocking_region.h"
#include "async/executor.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

struct ThreadPoolOptions {
  // Maximum number of closures running at the same time; blocked closures are
  // not counted.
  int num_threads = 4;
  // Limit on threads, blocked ones included. Once so many are blocked, posted
  // closures wait until one goes on.
  int max_threads = 512;
  // Shown in debuggers; up to 15 characters count.
  std::string name = "hawser";
};

// Threads now, for debug information.
struct ThreadPoolStats {
  int num_threads = 0;
  int num_idle = 0;
  // In a BlockingRegion, such as Future::Wait.
  int num_blocked = 0;
  // Closures that have not begun.
  int num_queued = 0;
};

// An executor of threads, first posted, first begun.
//
// Closures may block inside a BlockingRegion (Future::Wait has one): another
// thread then takes the place, so that closures which wait for closures behind
// them do not deadlock, up to `max_threads`. Threads start on demand and stop
// when there are more than `num_threads` idle ones.
class ThreadPool final : public Executor, private BlockingObserver {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  // Does Shutdown. Must not run on a thread of the pool.
  ~ThreadPool() override;

  // After Shutdown has begun, `closure` is destroyed unrun, except where a
  // closure of this pool posts it.
  void Post(absl::AnyInvocable<void() &&> closure) override;

  // Runs what was posted before, and what that posts, then joins the threads.
  // Idempotent; each call returns when all that is done. Must not run on a
  // thread of the pool.
  void Shutdown();

  ThreadPoolStats stats() const;

  // Whether so many threads of the calling thread's pool are blocked that only
  // its last `num_threads` are left. What runs on these must not wait for other
  // closures of the pool: refuse the work, or give it to another executor; then
  // the pool goes on however many wait. False outside of pools, and while
  // `max_threads` is not more than `num_threads`.
  static bool IsNearlyExhausted();

 private:
  struct IdleThread;
  using ThreadList = std::list<std::thread>;

  void OnBlock() override;
  void OnUnblock() override;

  // Sees to it that somebody takes the next closure, if that is allowed.
  void ActivateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(ThreadList::iterator self);
  // Runs closures until there are none or too many threads are active.
  void RunQueuedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for work; false if the thread is to end.
  bool IdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ThreadPoolOptions options_;

  mutable Mutex mutex_;
  CondVar all_ended_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  // Neither idle nor blocked. More than `num_threads` for a moment when
  // blocked threads go on.
  int num_active_ ABSL_GUARDED_BY(mutex_) = 0;
  // Changed under the lock.
  std::atomic<int> num_blocked_{0};
  // The last one went idle last: its caches are warmest.
  std::vector<IdleThread*> idle_ ABSL_GUARDED_BY(mutex_);
  ThreadList threads_ ABSL_GUARDED_BY(mutex_);
  // The thread that ended last; each one joins the one before it.
  std::thread ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_THREAD_POOL_H_
