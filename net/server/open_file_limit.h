// Limit on the file descriptors of this process.

#ifndef HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
#define HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_

#include <cstdint>

namespace hawser::net {

// Descriptors that a worker needs for each worker that it exchanges calls with,
// rounded up: connections, and the events of links within a machine.
inline constexpr int kFilesPerPeer = 8;

// Raises the soft limit (RLIMIT_NOFILE) to the hard limit, since shells default
// to 1024. Leaves it unchanged if the system refuses. Returns the limit in
// force. Thread-safe.
uint64_t RaiseOpenFileLimit();

// Calls RaiseOpenFileLimit, and logs a warning if the limit is too low for
// `num_peers` workers. Call it in one process of a job. Thread-safe.
void WarnIfFewOpenFiles(int num_peers);

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
