#include "ipc/yield_rest.h"

#include <algorithm>

namespace hawser::rpc {

void YieldRest::Yielded(async::MonotonicTime start, async::MonotonicTime end) {
  if (end - start <= kTooLong) return;
  std::chrono::milliseconds rest = rest_.load(std::memory_order_relaxed);
  // Yields went well after the last backoff for at least its length.
  if (start >= until_.load(std::memory_order_relaxed) + rest) {
    rest = rest.zero();
  }
  rest = std::clamp(2 * rest, kShortest, kLongest);
  rest_.store(rest, std::memory_order_relaxed);
  until_.store(end + rest, std::memory_order_relaxed);
}

}  // namespace hawser::rpc
