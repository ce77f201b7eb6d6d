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

// Costs two atomic additions per call, and takes a lock only when the last call
// ends and WhenIdle was called. Thread-safe.
class InFlightCounter {
 public:
  InFlightCounter() = default;
  InFlightCounter(const InFlightCounter&) = delete;
  InFlightCounter& operator=(const InFlightCounter&) = delete;

  void Begin() { count_.fetch_add(1, std::memory_order_seq_cst); }
  // Call once per Begin. May complete futures of WhenIdle in this thread.
  void End() {
    if (count_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        awaited_.load(std::memory_order_seq_cst)) {
      NotifyIdle();
    }
  }

  int64_t value() const { return count_.load(std::memory_order_acquire); }

  // Becomes ready when no call is in flight. All calls that have begun by now
  // have then ended; later calls may be in flight.
  async::Future<void> WhenIdle();

 private:
  void NotifyIdle();

  std::atomic<int64_t> count_{0};
  // Whether WhenIdle was ever called.
  std::atomic<bool> awaited_{false};
  async::Mutex mutex_;
  std::vector<async::Promise<void>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_IN_FLIGHT_COUNTER_H_
