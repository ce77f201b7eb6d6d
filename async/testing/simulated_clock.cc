#include "async/testing/simulated_clock.h"

#include <algorithm>
#include <iterator>

namespace hawser::async {

// Starts away from zero, so that times before the start exist.
SimulatedClock::SimulatedClock()
    : now_(MonotonicTime() + std::chrono::hours(1)) {}

SimulatedClock::~SimulatedClock() = default;

MonotonicTime SimulatedClock::Now() const {
  MutexLock lock(&mutex_);
  return now_;
}

TimerId SimulatedClock::CallAt(MonotonicTime time, Callback callback) {
  Task task(std::move(callback));
  MutexLock lock(&mutex_);
  const uint64_t id = ++last_id_;
  timers_.emplace(Key(time, id), std::move(task));
  return TimerId{id};
}

bool SimulatedClock::Cancel(TimerId timer) {
  decltype(timers_)::node_type cancelled;
  MutexLock lock(&mutex_);
  const auto it =
      std::find_if(timers_.begin(), timers_.end(), [timer](const auto& entry) {
        return TimerId{entry.first.second} == timer;
      });
  if (it == timers_.end()) return false;
  cancelled = timers_.extract(it);
  return true;
}

void SimulatedClock::AdvanceBy(absl::Duration delay) {
  const MonotonicTime limit = AddDelay(Now(), delay);
  while (RunNextBy(limit)) {
  }
  MutexLock lock(&mutex_);
  now_ = std::max(now_, limit);
}

bool SimulatedClock::AdvanceToNextTimer() { return RunNextBy(kNever); }

size_t SimulatedClock::num_timers() const {
  MutexLock lock(&mutex_);
  return timers_.size();
}

bool SimulatedClock::RunNextBy(MonotonicTime limit) {
  Task task;
  {
    MutexLock lock(&mutex_);
    if (timers_.empty() || timers_.begin()->first.first > limit) return false;
    auto next = timers_.extract(timers_.begin());
    // The clock does not advance to kNever.
    if (next.key().first != kNever) now_ = std::max(now_, next.key().first);
    task = std::move(next.mapped());
  }
  std::move(task).Run();
  return true;
}

}  // namespace hawser::async
