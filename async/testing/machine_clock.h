#ifndef HAWSER_ASYNC_TESTING_MACHINE_CLOCK_H_
#define HAWSER_ASYNC_TESTING_MACHINE_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

// The monotonic clock of one of several simulated machines, which share a base
// clock. Runs as the base clock does, except when a test says so. Timers run in
// timers of the base clock. Thread-safe.
class MachineClock final : public Clock {
 public:
  // `base` must outlive this object.
  explicit MachineClock(Clock* base);
  ~MachineClock() override;

  MonotonicTime Now() const override;
  TimerId CallAt(MonotonicTime time, Callback callback) override;
  bool Cancel(TimerId timer) override;

  // Advances by `time`, as the clock of a virtual machine does that was moved:
  // timers due by then are late, and run at the next event of the base clock.
  void JumpForward(absl::Duration time);
  // Stops the clock, as while the machine is suspended; its timers wait.
  void Suspend();
  // Continues at the time at which it stopped. Does nothing unless suspended.
  void Resume();

 private:
  using Key = std::pair<MonotonicTime, uint64_t>;

  MonotonicTime NowLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the timer of the base clock that of the first timer here.
  void ArmLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunDue();

  Clock& base_;

  mutable Mutex mutex_;
  // Time by which this clock is ahead of the base clock.
  std::chrono::steady_clock::duration ahead_ ABSL_GUARDED_BY(mutex_){};
  std::optional<MonotonicTime> suspended_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Task> timers_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, MonotonicTime> times_ ABSL_GUARDED_BY(mutex_);
  // The timer of the base clock, and its time on this one.
  std::optional<TimerId> armed_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime armed_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_MACHINE_CLOCK_H_
