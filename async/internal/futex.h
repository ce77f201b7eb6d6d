#ifndef HAWSER_ASYNC_INTERNAL_FUTEX_H_
#define HAWSER_ASYNC_INTERNAL_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "async/clock.h"

namespace hawser::async::internal {

// Blocks while `word` is `expected`, until a wake; may return without cause.
// False if `deadline` passed.
bool FutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
               MonotonicTime deadline);

// Wakes every thread that waits at this address. The word itself is not read:
// it may be gone by then.
void FutexWakeAll(const std::atomic<uint32_t>* word);

}  // namespace hawser::async::internal

#endif  // HAWSER_ASYNC_INTERNAL_FUTEX_H_
