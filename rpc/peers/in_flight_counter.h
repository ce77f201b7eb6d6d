// Count of calls in flight, with a notification when it becomes zero.

#ifndef HAWSER_RPC_PEERS_IN_FLIGHT_COUNTER_H_
#define HAWSER_RPC_PEERS_IN_FLIGHT_COUNTER_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/future.h"
#include "async/mutex.h"

namespace hawser::rpc {

// Counts what begins and ends. Costs a call two additions, and takes a lock
// only where the last one ends and someone has asked for that. Thread-safe.
class InFlightCounter {
 public:
  InFlightCounter() = default;
  InFlightCounter(const InFlightCounter&) = delete;
  InFlightCounter& operator=(const InFlightCounter&) = delete;

  void Begin() { count_.fetch_add(1, std::memory_order_seq_cst); }
  // Once per Begin. May complete futures of WhenIdle, in this thread.
  void End() {
    if (count_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        awaited_.load(std::memory_order_seq_cst)) {
      NotifyIdle();
    }
  }

  int64_t value() const { return count_.load(std::memory_order_acquire); }

  // Ready when no call is under way: none that has begun by now is then. Later
  // ones may be.
  async::Future<void> WhenIdle();

 private:
  void NotifyIdle();

  std::atomic<int64_t> count_{0};
  // Whether anybody ever called WhenIdle.
  std::atomic<bool> awaited_{false};
  async::Mutex mutex_;
  std::vector<async::Promise<void>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_IN_FLIGHT_COUNTER_H_
