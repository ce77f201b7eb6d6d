#include "store/backoff.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hawser::store::internal {
namespace {

constexpr absl::Duration kLastPause = absl::Seconds(1);

}  // namespace

void Backoff::Pause(async::MonotonicTime deadline) {
  std::this_thread::sleep_until(std::min(
      deadline, async::AddDelay(std::chrono::steady_clock::now(), pause_)));
  pause_ = std::min(2 * pause_, kLastPause);
}

}  // namespace hawser::store::internal
