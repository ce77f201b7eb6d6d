// Replacement of a thread whose work takes long.

#ifndef HAWSER_ASYNC_LONG_RUN_GUARD_H_
#define HAWSER_ASYNC_LONG_RUN_GUARD_H_

#include <chrono>
#include <cstdint>

#include "async/blocking_region.h"
#include "async/run_time.h"

namespace hawser::async {

// Scope around work of unknown length in a thread that others wait for, such as
// one that polls a socket. After one to ten milliseconds, the thread's
// BlockingObserver is told that the thread blocks, so that another one replaces
// it, and at the end of the scope that it resumes. A BlockingRegion inside the
// scope tells the observer at once.
//
// The observer is called in another thread, which serves all guards of the
// process. That thread looks at them every eight milliseconds, and again a
// millisecond after it has seen a thread at work, and sleeps if none was at
// work for two looks. Without it, a guard takes two atomic operations.
//
// Has no effect in a thread without an observer, and inside another guard.
class LongRunGuard final : private BlockingObserver {
 public:
  // The work may go on for this long before the thread is replaced.
  static constexpr std::chrono::milliseconds kLimit{1};

  // If the thread is replaced, records kLimit in `run_time`, which must outlive
  // the guard, without waiting for the end of the work.
  explicit LongRunGuard(RunTime* run_time);
  ~LongRunGuard();
  LongRunGuard(const LongRunGuard&) = delete;
  LongRunGuard& operator=(const LongRunGuard&) = delete;

  // Replaces the thread now: the work is expected to take long.
  void Replace();

  // Whether the calling thread can be replaced if its work takes long: it has a
  // guard, or an observer for one.
  static bool CanReplaceThisThread();

 private:
  // Called by a BlockingRegion in the guarded work.
  void OnBlock() override;
  void OnUnblock() override;
  void Begin();

  RunTime* const run_time_;
  // Null if the guard has no effect.
  BlockingObserver* observer_ = nullptr;
  // The thread was replaced because its work took long.
  bool replaced_ = false;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_LONG_RUN_GUARD_H_
