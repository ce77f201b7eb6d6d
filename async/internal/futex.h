#ifndef HAWSER_ASYNC_INTERNAL_FUTEX_H_
#define HAWSER_ASYNC_INTERNAL_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "async/clock.h"

namespace hawser::async::internal {

// Blocks while `word` equals `expected`, until woken; spurious wakeups are
// possible. Returns false if `deadline` passed.
bool FutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
               MonotonicTime deadline);

// Wakes every thread that waits at this address. The word itself is not read,
// so it may already be destroyed.
void FutexWakeAll(const std::atomic<uint32_t>* word);

}  // namespace hawser::async::internal

#endif  // HAWSER_ASYNC_INTERNAL_FUTEX_H_
