// Threads that look for what another thread is to do on the same core.

#ifndef HAWSER_IPC_MAKE_WAY_H_
#define HAWSER_IPC_MAKE_WAY_H_

namespace hawser::rpc {

// For a thread that looks for what a thread of another process is to write,
// which last ran on this core: lets it run. Both stay ready to run then, so
// that the kernel moves one of them to a core that is idle. False: something
// else took the core for longer than a wake-up costs, not long ago (YieldRest):
// sleep instead. Thread-safe.
bool MakeWay();

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_MAKE_WAY_H_
