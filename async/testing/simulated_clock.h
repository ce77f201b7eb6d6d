#ifndef HAWSER_ASYNC_TESTING_SIMULATED_CLOCK_H_
#define HAWSER_ASYNC_TESTING_SIMULATED_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

// A clock that advances only when a test says so. Timers run inside the Advance
// calls, each with Now() equal to its own time. Thread-safe, but only one
// thread at a time may advance it.
class SimulatedClock final : public Clock {
 public:
  SimulatedClock();
  ~SimulatedClock() override;

  MonotonicTime Now() const override;
  TimerId CallAt(MonotonicTime time, Callback callback) override;
  bool Cancel(TimerId timer) override;

  // Advances by `delay` and runs every timer due by then, including new ones.
  void AdvanceBy(absl::Duration delay);
  // Advances to the next timer and runs it; returns false if there is none.
  bool AdvanceToNextTimer();

  size_t num_timers() const;

 private:
  using Key = std::pair<MonotonicTime, uint64_t>;

  // Runs the next timer if it is due by `limit`.
  bool RunNextBy(MonotonicTime limit);

  mutable Mutex mutex_;
  MonotonicTime now_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Task> timers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_SIMULATED_CLOCK_H_
