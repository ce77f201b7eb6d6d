#include "rpc/peers/in_flight_counter.h"

#include <utility>

#include "absl/status/status.h"

namespace hawser::rpc {

async::Future<void> InFlightCounter::WhenIdle() {
  async::Promise<void> promise;
  async::Future<void> future = promise.future();
  {
    async::MutexLock lock(&mutex_);
    idle_.push_back(std::move(promise));
    awaited_.store(true, std::memory_order_seq_cst);
  }
  // The last call may have ended before the waiter was visible.
  if (count_.load(std::memory_order_seq_cst) == 0) NotifyIdle();
  return future;
}

void InFlightCounter::NotifyIdle() {
  std::vector<async::Promise<void>> idle;
  {
    async::MutexLock lock(&mutex_);
    // A call that has begun since then will notify later waiters.
    if (count_.load(std::memory_order_seq_cst) != 0) return;
    idle.swap(idle_);
  }
  for (auto& promise : idle) promise.Set(absl::OkStatus());
}

}  // namespace hawser::rpc
