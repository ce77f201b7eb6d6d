// A mutex whose holder can let others have it first.

#ifndef HAWSER_ASYNC_YIELDING_MUTEX_H_
#define HAWSER_ASYNC_YIELDING_MUTEX_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace hawser::async {

// For long work that is done in steps under a lock which others hold briefly.
// Unlocking a mutex between the steps would not let the others have it: the
// thread that unlocks it locks it again before they have woken up. Costs as
// much as a Mutex while nobody waits for it. Not fair: a thread that locks it
// again at once may have it several times before one that waits.
class ABSL_LOCKABLE YieldingMutex {
 public:
  YieldingMutex() = default;
  YieldingMutex(const YieldingMutex&) = delete;
  YieldingMutex& operator=(const YieldingMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    if (!yielded_) return;
    yielded_ = false;
    entered_.notify_one();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // If threads wait for the mutex, unlocks it, and locks it again after at
  // least one of them has had it. At most one thread at a time.
  void Yield() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (waiting_.load(std::memory_order_relaxed) == 0) return;
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    yielded_ = true;
    entered_.wait(lock, [this] { return !yielded_; });
    lock.release();
  }

 private:
  std::mutex mutex_;
  std::condition_variable entered_;
  // Threads in Lock that have not got the mutex at once.
  std::atomic<uint32_t> waiting_{0};
  // Whether Yield waits for one of them. Guarded by mutex_.
  bool yielded_ = false;
};

// Holds a mutex for a scope.
class ABSL_SCOPED_LOCKABLE YieldingMutexLock {
 public:
  explicit YieldingMutexLock(YieldingMutex* mutex)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~YieldingMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  YieldingMutexLock(const YieldingMutexLock&) = delete;
  YieldingMutexLock& operator=(const YieldingMutexLock&) = delete;

 private:
  YieldingMutex* const mutex_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_YIELDING_MUTEX_H_
