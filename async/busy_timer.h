// Timer of the work of a thread.

#ifndef HAWSER_ASYNC_BUSY_TIMER_H_
#define HAWSER_ASYNC_BUSY_TIMER_H_

#include <chrono>

namespace hawser::async {

// Measures the time since its construction without that in which the thread
// waited: in a BlockingRegion, or in a Pause. Timers nest. Used by one thread.
class BusyTimer {
 public:
  BusyTimer();
  ~BusyTimer();
  BusyTimer(const BusyTimer&) = delete;
  BusyTimer& operator=(const BusyTimer&) = delete;

  std::chrono::nanoseconds Elapsed() const;

  // Scope in which the thread waits. Pauses nest. Does not read the clock in a
  // thread without timers.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const bool counts_;
    std::chrono::steady_clock::time_point start_;
  };

 private:
  const std::chrono::nanoseconds paused_before_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_BUSY_TIMER_H_
