#ifndef HAWSER_ASYNC_BLOCKING_REGION_H_
#define HAWSER_ASYNC_BLOCKING_REGION_H_

#include "async/busy_timer.h"

namespace hawser::async {

// Observer of the blocking threads of one executor.
class BlockingObserver {
 public:
  virtual ~BlockingObserver() = default;

  // OnBlock is called before the thread blocks, OnUnblock after it resumes.
  // Both are called on that thread, but OnBlock by another one if a
  // LongRunGuard (async/long_run_guard.h) replaces the thread.
  virtual void OnBlock() = 0;
  virtual void OnUnblock() = 0;

  // Installs `observer` on the calling thread; null removes it. Returns the
  // previous observer, or null.
  static BlockingObserver* SetForThisThread(BlockingObserver* observer);
  // The observer of the calling thread, or null.
  static BlockingObserver* OfThisThread();
};

// Scope around code that blocks on work which the thread's own executor may
// have to run, such as a wait on a condition variable or a synchronous call to
// another process. Future::Wait contains one. Regions nest, and cost nothing on
// a thread without an observer. A BusyTimer (async/busy_timer.h) does not count
// their time.
class BlockingRegion {
 public:
  BlockingRegion();
  ~BlockingRegion();
  BlockingRegion(const BlockingRegion&) = delete;
  BlockingRegion& operator=(const BlockingRegion&) = delete;

 private:
  const BusyTimer::Pause pause_;
  BlockingObserver* const observer_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_BLOCKING_REGION_H_
