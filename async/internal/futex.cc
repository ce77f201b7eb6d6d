#include "async/internal/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>

namespace hawser::async::internal {

bool FutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
               MonotonicTime deadline) {
  timespec until = {};
  const timespec* timeout = nullptr;
  if (deadline != kNever) {
    const auto since_boot = deadline.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    // A time before the epoch has passed; the kernel would reject it.
    if (seconds.count() < 0) return false;
    until.tv_sec = seconds.count();
    until.tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count();
    timeout = &until;
  }
  // The bitset form takes an absolute time on CLOCK_MONOTONIC.
  const long result =
      syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
              expected, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

void FutexWakeAll(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr,
          nullptr, 0);
}

}  // namespace hawser::async::internal
