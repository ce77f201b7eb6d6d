// Limit on the file descriptors of this process.

#ifndef HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
#define HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_

namespace hawser::net {

// Raises the soft limit (RLIMIT_NOFILE) to the hard limit, since each peer uses
// several descriptors and shells default to 1024. Leaves it unchanged if the
// system refuses. If it is then below 65,536, too few for a job of thousands of
// workers, logs a warning to stderr, once per process. Thread-safe.
void RaiseOpenFileLimit();

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
