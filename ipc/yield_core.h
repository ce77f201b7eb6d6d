// Yield of a polling thread to a peer on the same core.

#ifndef HAWSER_IPC_YIELD_CORE_H_
#define HAWSER_IPC_YIELD_CORE_H_

namespace hawser::ipc {

// Yields the core to a thread of another process that last ran on this core and
// whose write the caller polls for. Both threads stay runnable, so the kernel
// can move one of them to an idle core. Returns false if another thread
// recently kept the core for longer than a wake-up costs (YieldBackoff): the
// caller should sleep instead. Thread-safe.
bool YieldCore();

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_YIELD_CORE_H_
