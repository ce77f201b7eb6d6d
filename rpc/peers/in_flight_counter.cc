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
  // The last one may have ended before it was seen that someone waits.
  if (count_.load(std::memory_order_seq_cst) == 0) NotifyIdle();
  return future;
}

void InFlightCounter::NotifyIdle() {
  std::vector<async::Promise<void>> idle;
  {
    async::MutexLock lock(&mutex_);
    // One that began since then tells those that came after it.
    if (count_.load(std::memory_order_seq_cst) != 0) return;
    idle.swap(idle_);
  }
  for (auto& promise : idle) promise.Set(absl::OkStatus());
}

}  // namespace hawser::rpc
