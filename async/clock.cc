#include "async/clock.h"

#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/check.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

MonotonicTime AddDelay(MonotonicTime time, absl::Duration delay) {
  if (time == kNever) return kNever;
  const absl::Duration left =
      absl::FromChrono(kNever.time_since_epoch() - time.time_since_epoch());
  if (delay >= left) return kNever;
  return time + absl::ToChronoNanoseconds(delay);
}

absl::Duration TimeBetween(MonotonicTime earlier, MonotonicTime later) {
  if (later == kNever) return absl::InfiniteDuration();
  if (earlier == kNever) return -absl::InfiniteDuration();
  return absl::FromChrono(later - earlier);
}

class RealClock::TimerThread {
 public:
  ~TimerThread() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (!thread_.joinable()) return;
    HAWSER_CHECK(thread_.get_id() != std::this_thread::get_id())
        << "a clock must not be destroyed by one of its own callbacks";
    thread_.join();
  }

  TimerId Add(MonotonicTime time, Task task) {
    MutexLock lock(&mutex_);
    const uint64_t id = ++last_id_;
    const auto it = queue_.emplace(Key(time, id), std::move(task)).first;
    times_.emplace(id, time);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    if (it == queue_.begin()) changed_.NotifyAll();
    return TimerId{id};
  }

  bool Cancel(TimerId timer) {
    Task cancelled;
    MutexLock lock(&mutex_);
    const auto id = static_cast<uint64_t>(timer);
    const auto time = times_.find(id);
    if (time == times_.end()) return false;
    const auto it = queue_.find(Key(time->second, id));
    cancelled = std::move(it->second);
    queue_.erase(it);
    times_.erase(time);
    return true;
  }

 private:
  using Key = std::pair<MonotonicTime, uint64_t>;

  void Run() {
    while (std::optional<Task> task = Next()) std::move(*task).Run();
  }

  // Waits for the next timer; nullopt when the clock is destroyed.
  std::optional<Task> Next() {
    MutexLock lock(&mutex_);
    while (!stopping_) {
      const MonotonicTime time =
          queue_.empty() ? kNever : queue_.begin()->first.first;
      if (time > std::chrono::steady_clock::now()) {
        changed_.WaitUntil(&mutex_, time);
        continue;
      }
      auto next = queue_.extract(queue_.begin());
      times_.erase(next.key().second);
      return std::move(next.mapped());
    }
    return std::nullopt;
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, MonotonicTime> times_ ABSL_GUARDED_BY(mutex_);
  // Started under the lock, joined by the destructor.
  std::thread thread_;
};

RealClock::RealClock() : timers_(std::make_unique<TimerThread>()) {}
RealClock::~RealClock() = default;

MonotonicTime RealClock::Now() const {
  return std::chrono::steady_clock::now();
}

TimerId RealClock::CallAt(MonotonicTime time, Callback callback) {
  return timers_->Add(time, Task(std::move(callback)));
}

bool RealClock::Cancel(TimerId timer) { return timers_->Cancel(timer); }

}  // namespace hawser::async
