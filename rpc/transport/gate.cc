#include "rpc/transport/gate.h"

#include "async/blocking_region.h"

namespace hawser::rpc {

void Gate::Close() {
  state_.fetch_or(kClosed, std::memory_order_acq_rel);
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  while (state_.load(std::memory_order_acquire) != kClosed) {
    empty_.Wait(&mutex_);
  }
}

void Gate::NotifyEmpty() {
  async::MutexLock lock(&mutex_);
  empty_.NotifyAll();
}

}  // namespace hawser::rpc
