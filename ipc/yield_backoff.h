// Backoff of a thread that yields its core, after which it sleeps.

#ifndef HAWSER_IPC_YIELD_BACKOFF_H_
#define HAWSER_IPC_YIELD_BACKOFF_H_

#include <atomic>
#include <chrono>

#include "async/clock.h"

namespace hawser::ipc {

// Measures how long each yield gave up the core. After a yield that took too
// long, threads do not yield for a backoff period of 1 ms. If the last period
// ended less than its own length ago, the new one is twice as long, up to 1 s.
// A single long yield thus costs little, and on a busy machine yields become
// rare. Thread-safe.
class YieldBackoff {
 public:
  // Shorter than a Linux time slice, longer than a peer needs to reply.
  static constexpr std::chrono::microseconds kTooLong{500};
  static constexpr std::chrono::milliseconds kShortest{1};
  static constexpr std::chrono::milliseconds kLongest{1000};

  // Whether to sleep rather than yield.
  bool BackingOff(async::MonotonicTime now) const {
    return now < until_.load(std::memory_order_relaxed);
  }
  // Reports a yield that lasted from `start` to `end`.
  void Yielded(async::MonotonicTime start, async::MonotonicTime end);

 private:
  // Length and end of the last backoff period. Concurrent updates may mix
  // values, which only makes the period too short or too long.
  std::atomic<async::MonotonicTime> until_{};
  std::atomic<std::chrono::milliseconds> backoff_{};
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_YIELD_BACKOFF_H_
