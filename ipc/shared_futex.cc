#include "ipc/shared_futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

namespace hawser::ipc {

// The kernel compares the word, which std::atomic stores as it is.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void SharedFutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
                     async::MonotonicTime deadline) {
  // steady_clock is CLOCK_MONOTONIC, the clock of FUTEX_WAIT_BITSET.
  const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               deadline.time_since_epoch())
                               .count();
  timespec until{};
  until.tv_sec = since_epoch / 1'000'000'000;
  until.tv_nsec = since_epoch % 1'000'000'000;
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected,
          deadline == async::kNever ? nullptr : &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void SharedFutexWakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hawser::ipc
