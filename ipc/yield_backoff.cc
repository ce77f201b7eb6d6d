#include "ipc/yield_backoff.h"

#include <algorithm>

namespace hawser::ipc {

void YieldBackoff::Yielded(async::MonotonicTime start,
                           async::MonotonicTime end) {
  if (end - start <= kTooLong) return;
  std::chrono::milliseconds backoff = backoff_.load(std::memory_order_relaxed);
  // Yields went well after the last backoff for at least its length.
  if (start >= until_.load(std::memory_order_relaxed) + backoff) {
    backoff = backoff.zero();
  }
  backoff = std::clamp(2 * backoff, kShortest, kLongest);
  backoff_.store(backoff, std::memory_order_relaxed);
  until_.store(end + backoff, std::memory_order_relaxed);
}

}  // namespace hawser::ipc
