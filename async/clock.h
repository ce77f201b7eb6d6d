#ifndef HAWSER_ASYNC_CLOCK_H_
#define HAWSER_ASYNC_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace hawser::async {

// A point on the monotonic clock. The project makes no decision by wall time.
using MonotonicTime = std::chrono::steady_clock::time_point;

// A deadline that never passes.
inline constexpr MonotonicTime kNever = MonotonicTime::max();

// `time` + `delay`, kNever on overflow.
MonotonicTime AddDelay(MonotonicTime time, absl::Duration delay);

// `later` - `earlier`; infinite if either is kNever.
absl::Duration TimeBetween(MonotonicTime earlier, MonotonicTime later);

// Identifies a pending timer of one clock; never reused.
enum class TimerId : uint64_t {};

// Source of time and timers; simulations replace it. Thread-safe.
class Clock {
 public:
  using Callback = absl::AnyInvocable<void() &&>;

  virtual ~Clock() = default;

  virtual MonotonicTime Now() const = 0;

  // Runs `callback` when `time` is reached, never inside this call, under the
  // caller's TaskContext and without holding a lock. Callbacks of one clock run
  // sequentially, ordered by time and then by registration, so they must not
  // block. Callbacks still pending when the clock is destroyed are destroyed
  // without running.
  virtual TimerId CallAt(MonotonicTime time, Callback callback) = 0;

  // Returns true if the callback was pending; it is destroyed and will not run.
  // Returns false if it has started or finished; it may still be running.
  virtual bool Cancel(TimerId timer) = 0;

  TimerId CallAfter(absl::Duration delay, Callback callback) {
    return CallAt(AddDelay(Now(), delay), std::move(callback));
  }
};

// The machine's monotonic clock. One thread, started with the first timer, runs
// the callbacks. The clock must not be destroyed by one of them.
class RealClock final : public Clock {
 public:
  RealClock();
  ~RealClock() override;

  MonotonicTime Now() const override;
  TimerId CallAt(MonotonicTime time, Callback callback) override;
  bool Cancel(TimerId timer) override;

 private:
  class TimerThread;
  const std::unique_ptr<TimerThread> timers_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_CLOCK_H_
