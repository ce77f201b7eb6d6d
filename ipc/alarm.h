// Wake-up time of the sleeping thread of an event loop.

#ifndef HAWSER_IPC_ALARM_H_
#define HAWSER_IPC_ALARM_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "async/clock.h"
#include "async/mutex.h"

namespace hawser::ipc {

// At most one of several threads sleeps until the next deadline. The others are
// awake and check the deadlines before they sleep.
//
// A requested time is kept until it has passed, even if its deadline was
// cancelled. Consecutive calls that complete long before their deadlines
// therefore wake the sleeping thread once, not each time. Thread-safe.
class Alarm {
 public:
  // Requests that a thread be awake by `time`. Returns true if the caller must
  // wake the sleeping thread, which would sleep longer.
  bool MustWake(async::MonotonicTime time);

  // Marks the calling thread as asleep until `next` or a requested time,
  // whichever comes first. Returns false if another thread already sleeps.
  // Later requests for an earlier time return true from MustWake; the caller
  // must check deadlines that were added before this call again.
  bool FallAsleep(async::MonotonicTime now, async::MonotonicTime next);
  // The time until which to sleep. For the sleeping thread.
  async::MonotonicTime time() const {
    return time_.load(std::memory_order_seq_cst);
  }
  // The sleeping thread is awake again.
  void WakeUp() { time_.store(kAwake, std::memory_order_seq_cst); }

  bool anyone_sleeps() const { return time() != kAwake; }

 private:
  // Value of the time while no thread sleeps.
  static constexpr async::MonotonicTime kAwake = async::MonotonicTime::min();

  // Modified under the lock, except by WakeUp.
  std::atomic<async::MonotonicTime> time_{kAwake};
  async::Mutex mutex_;
  async::MonotonicTime asked_ ABSL_GUARDED_BY(mutex_) = async::kNever;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_ALARM_H_
