// Backoff of a thread that yields its core, after which it sleeps.

#ifndef HAWSER_IPC_YIELD_REST_H_
#define HAWSER_IPC_YIELD_REST_H_

#include <atomic>
#include <chrono>

#include "async/clock.h"

namespace hawser::rpc {

// Judges yields by how long the core was away. After one that took too long
// nobody yields for a rest: 1 ms; and twice the last rest, up to 1 s, if that
// was over for less time than it had lasted. So a stroke of bad luck costs
// little, and where all cores are wanted they are not given away often.
// Thread-safe.
class YieldRest {
 public:
  // Less than a time slice of Linux, and more than a peer needs to answer.
  static constexpr std::chrono::microseconds kTooLong{500};
  static constexpr std::chrono::milliseconds kShortest{1};
  static constexpr std::chrono::milliseconds kLongest{1000};

  // Whether to sleep rather than yield.
  bool Resting(async::MonotonicTime now) const {
    return now < until_.load(std::memory_order_relaxed);
  }
  // A yield took from `start` to `end`.
  void Yielded(async::MonotonicTime start, async::MonotonicTime end);

 private:
  // The last rest, and its end. Threads that judge at once may mix theirs,
  // which makes a rest too short or too long, but a rest.
  std::atomic<async::MonotonicTime> until_{};
  std::atomic<std::chrono::milliseconds> rest_{};
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_YIELD_REST_H_
