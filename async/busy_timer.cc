#include "async/busy_timer.h"

#include <utility>

namespace hawser::async {
namespace {

using Clock = std::chrono::steady_clock;

thread_local constinit int t_num_timers = 0;
thread_local constinit bool t_paused = false;
// Sum of the pauses that have ended.
thread_local constinit std::chrono::nanoseconds t_pauses{0};

}  // namespace

BusyTimer::BusyTimer() : paused_before_(t_pauses), start_(Clock::now()) {
  ++t_num_timers;
}

BusyTimer::~BusyTimer() { --t_num_timers; }

std::chrono::nanoseconds BusyTimer::Elapsed() const {
  return Clock::now() - start_ - (t_pauses - paused_before_);
}

BusyTimer::Pause::Pause() : counts_(t_num_timers > 0 && !t_paused) {
  if (!counts_) return;
  t_paused = true;
  start_ = Clock::now();
}

BusyTimer::Pause::~Pause() {
  if (!counts_) return;
  t_paused = false;
  t_pauses += Clock::now() - start_;
}

}  // namespace hawser::async
