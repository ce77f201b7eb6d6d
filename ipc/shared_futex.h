// Waiting on a word of memory that processes share.

#ifndef HAWSER_IPC_SHARED_FUTEX_H_
#define HAWSER_IPC_SHARED_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "async/clock.h"

namespace hawser::ipc {

// Blocks while `word` equals `expected`, until a process wakes the waiters of
// the word, or `deadline` has passed. Spurious returns are possible.
void SharedFutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
                     async::MonotonicTime deadline);

// Wakes the threads of all processes that wait on `word`.
void SharedFutexWakeAll(const std::atomic<uint32_t>& word);

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_SHARED_FUTEX_H_
