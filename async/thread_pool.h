#ifndef HAWSER_ASYNC_THREAD_POOL_H_
#define HAWSER_ASYNC_THREAD_POOL_H_

#include <atomic>
#include <deque>
#include <list>
#include <memory>
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
  // Limit on threads, including blocked ones. While this many are blocked,
  // posted closures wait until one resumes.
  int max_threads = 512;
  // Thread name shown in debuggers; truncated to 15 characters.
  std::string name = "hawser";
};

// Current thread counts, for debug information.
struct ThreadPoolStats {
  int num_threads = 0;
  int num_idle = 0;
  // Threads in a BlockingRegion, such as Future::Wait.
  int num_blocked = 0;
  // Closures that have not started.
  int num_queued = 0;
};

// A pool of threads that starts closures in the order posted.
//
// Closures may block inside a BlockingRegion (Future::Wait has one): another
// thread then replaces the blocked one, up to `max_threads`, so that closures
// which wait for later closures do not deadlock. Threads start on demand.
// Beyond `num_threads`, a thread exits when it has been idle for a second.
class ThreadPool final : public Executor, private BlockingObserver {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  // Calls Shutdown. Must not run on a thread of the pool.
  ~ThreadPool() override;

  // After Shutdown has begun, `closure` is destroyed without running, unless a
  // closure of this pool posts it.
  void Post(absl::AnyInvocable<void() &&> closure) override;

  // Runs the closures posted before, and those that they post, then joins the
  // threads. Idempotent; each call returns when this is done. Must not run on a
  // thread of the pool.
  void Shutdown();

  ThreadPoolStats stats() const;

  // Whether the calling thread is one of the pool's.
  bool RunsThisThread() const;

  // Whether so many threads of the calling thread's pool are blocked that only
  // its last `num_threads` are left. Closures on these must not wait for other
  // closures of the pool; reject the work or post it to another executor. Then
  // the pool makes progress however many closures wait. False outside of pools,
  // and if `max_threads` does not exceed `num_threads`.
  static bool IsNearlyExhausted();

 private:
  struct IdleThread;
  using ThreadList = std::list<std::thread>;

  void OnBlock() override;
  void OnUnblock() override;

  // Takes an idle thread for the next closure, or starts one, if the limits
  // allow it. Returns what to notify to wake it, or null. The caller notifies
  // after it has released the lock, which the woken thread takes first.
  [[nodiscard]] std::shared_ptr<CondVar> ActivateLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(ThreadList::iterator self);
  // Runs closures until the queue is empty or too many threads are active.
  void RunQueuedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for work; returns false if the thread must exit.
  bool IdleLocked(IdleThread& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ThreadPoolOptions options_;

  mutable Mutex mutex_;
  CondVar all_ended_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  // Threads that are neither idle nor blocked. Briefly exceeds `num_threads`
  // when blocked threads resume.
  int num_active_ ABSL_GUARDED_BY(mutex_) = 0;
  // Modified under the lock.
  std::atomic<int> num_blocked_{0};
  // The last element went idle last, so its caches are warmest.
  std::vector<IdleThread*> idle_ ABSL_GUARDED_BY(mutex_);
  ThreadList threads_ ABSL_GUARDED_BY(mutex_);
  // The thread that exited last; each thread joins the one that exited before
  // it.
  std::thread ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_THREAD_POOL_H_
