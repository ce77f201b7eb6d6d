#ifndef HAWSER_ASYNC_CLOCK_H_
#define HAWSER_ASYNC_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace hawser::async {

// A point on the monotonic clock. Nothing in the project decides by wall time.
using MonotonicTime = std::chrono::steady_clock::time_point;

// A deadline that never passes.
inline constexpr MonotonicTime kNever = MonotonicTime::max();

// `time` + `delay`, kNever on overflow.
MonotonicTime AddDelay(MonotonicTime time, absl::Duration delay);

// `later` - `earlier`; infinite where one of them is kNever.
absl::Duration TimeBetween(MonotonicTime earlier, MonotonicTime later);

// Names one pending timer of one clock; never reused.
enum class TimerId : uint64_t {};

// Where time comes from: the one seam a simulation replaces. Thread-safe.
class Clock {
 public:
  using Callback = absl::AnyInvocable<void() &&>;

  virtual ~Clock() = default;

  virtual MonotonicTime Now() const = 0;

  // Runs `callback` once `time` is reached, never inside this call, under the
  // TaskContext of the caller, no lock held. Callbacks of one clock run one
  // after the other, by time and then in the order given: they must not
  // block. What is pending when the clock goes away is destroyed unrun.
  virtual TimerId CallAt(MonotonicTime time, Callback callback) = 0;

  // True if the callback was pending: it is destroyed and will not run. False
  // if it has begun or ended: it may still be running.
  virtual bool Cancel(TimerId timer) = 0;

  TimerId CallAfter(absl::Duration delay, Callback callback) {
    return CallAt(AddDelay(Now(), delay), std::move(callback));
  }
};

// The machine's monotonic clock. One thread, started with the first timer,
// runs the callbacks. Must not be destroyed in one of them.
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
