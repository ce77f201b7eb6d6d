// Limit on the descriptors of this process.

#ifndef HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
#define HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_

namespace hawser::net {

// Raises the soft limit to the hard one (RLIMIT_NOFILE), since each peer takes
// some descriptors and shells give processes 1024. Leaves it where it is if the
// system does not let it. Where it is below 65,536 then, too few for a job of
// thousands of workers, says so on stderr, once per process. Thread-safe.
void RaiseOpenFileLimit();

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_FILE_LIMIT_H_
