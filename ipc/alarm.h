// By when a thread of an event loop must be awake.

#ifndef HAWSER_IPC_ALARM_H_
#define HAWSER_IPC_ALARM_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "async/clock.h"
#include "async/mutex.h"

namespace hawser::rpc {

// Of several threads one sleeps at most, until something is due. The others
// are awake, and look at what is due before they sleep.
//
// A time that was asked for stays until it has passed, also if nothing will be
// due then: calls one after another, each of which is done long before its
// deadline, wake the sleeper once, not each time. Thread-safe.
class Alarm {
 public:
  // Asks that a thread be awake by `time`. True: the caller must wake the one
  // that sleeps, which would not be.
  bool MustWake(async::MonotonicTime time);

  // The calling thread is to sleep from now on, until `next` or a time asked
  // for, whichever comes first. False: another thread sleeps already. Who asks
  // for an earlier time after it is told to wake the thread; what was due
  // before must be looked at again.
  bool FallAsleep(async::MonotonicTime now, async::MonotonicTime next);
  // Until when it is to sleep. Of the thread that sleeps.
  async::MonotonicTime time() const {
    return time_.load(std::memory_order_seq_cst);
  }
  // The same thread is awake.
  void WakeUp() { time_.store(kAwake, std::memory_order_seq_cst); }

  bool anyone_sleeps() const { return time() != kAwake; }

 private:
  // In place of the time, while nobody sleeps.
  static constexpr async::MonotonicTime kAwake = async::MonotonicTime::min();

  // Changed under the lock, but for WakeUp.
  std::atomic<async::MonotonicTime> time_{kAwake};
  async::Mutex mutex_;
  async::MonotonicTime asked_ ABSL_GUARDED_BY(mutex_) = async::kNever;
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_ALARM_H_
