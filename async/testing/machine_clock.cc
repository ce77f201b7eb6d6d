#include "async/testing/machine_clock.h"

namespace hawser::async {

MachineClock::MachineClock(Clock* base) : base_(*base) {}

MachineClock::~MachineClock() {
  MutexLock lock(&mutex_);
  if (armed_.has_value()) base_.Cancel(*armed_);
}

MonotonicTime MachineClock::NowLocked() const {
  return suspended_.value_or(base_.Now() + ahead_);
}

MonotonicTime MachineClock::Now() const {
  MutexLock lock(&mutex_);
  return NowLocked();
}

TimerId MachineClock::CallAt(MonotonicTime time, Callback callback) {
  Task task(std::move(callback));
  MutexLock lock(&mutex_);
  const uint64_t id = ++last_id_;
  timers_.emplace(Key(time, id), std::move(task));
  times_.emplace(id, time);
  ArmLocked();
  return TimerId{id};
}

bool MachineClock::Cancel(TimerId timer) {
  decltype(timers_)::node_type cancelled;
  MutexLock lock(&mutex_);
  const auto time = times_.find(static_cast<uint64_t>(timer));
  if (time == times_.end()) return false;
  cancelled = timers_.extract(Key(time->second, time->first));
  times_.erase(time);
  return true;
}

void MachineClock::JumpForward(absl::Duration time) {
  MutexLock lock(&mutex_);
  if (suspended_.has_value()) {
    *suspended_ = AddDelay(*suspended_, time);
  } else {
    ahead_ += absl::ToChronoNanoseconds(time);
  }
  if (armed_.has_value()) base_.Cancel(*std::exchange(armed_, std::nullopt));
  ArmLocked();
}

void MachineClock::Suspend() {
  MutexLock lock(&mutex_);
  suspended_ = NowLocked();
  if (armed_.has_value()) base_.Cancel(*std::exchange(armed_, std::nullopt));
}

void MachineClock::Resume() {
  MutexLock lock(&mutex_);
  if (!suspended_.has_value()) return;
  ahead_ = *std::exchange(suspended_, std::nullopt) - base_.Now();
  ArmLocked();
}

void MachineClock::ArmLocked() {
  if (suspended_.has_value() || timers_.empty()) return;
  const MonotonicTime first = timers_.begin()->first.first;
  if (first == kNever || (armed_.has_value() && armed_time_ <= first)) return;
  if (armed_.has_value()) base_.Cancel(*armed_);
  armed_time_ = first;
  armed_ = base_.CallAt(first - ahead_, [this] { RunDue(); });
}

void MachineClock::RunDue() {
  {
    MutexLock lock(&mutex_);
    armed_.reset();
  }
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      if (suspended_.has_value() || timers_.empty() ||
          timers_.begin()->first.first > NowLocked()) {
        ArmLocked();
        return;
      }
      auto next = timers_.extract(timers_.begin());
      times_.erase(next.key().second);
      task = std::move(next.mapped());
    }
    std::move(task).Run();
  }
}

}  // namespace hawser::async
