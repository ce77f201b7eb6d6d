#include "rpc/same_host/make_way.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "async/clock.h"

namespace hawser::rpc {
namespace {

// Less than a time slice of Linux, and more than a peer needs to answer.
constexpr std::chrono::microseconds kTooLong{500};
constexpr std::chrono::seconds kRest{1};

}  // namespace

bool MakeWay() {
  static std::atomic<async::MonotonicTime> resting_until{};
  const async::MonotonicTime start = std::chrono::steady_clock::now();
  if (start < resting_until.load(std::memory_order_relaxed)) return false;
  std::this_thread::yield();
  const async::MonotonicTime end = std::chrono::steady_clock::now();
  if (end - start > kTooLong) {
    resting_until.store(end + kRest, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace hawser::rpc
