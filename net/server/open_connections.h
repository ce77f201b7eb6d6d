// Counts of open connections, in total and by address.

#ifndef HAWSER_NET_SERVER_OPEN_CONNECTIONS_H_
#define HAWSER_NET_SERVER_OPEN_CONNECTIONS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "async/clock.h"

namespace hawser::net {

// Counts accepted sockets that were handed on, to gRPC, which does not tell
// when it closes them: a socket is open as long as its descriptor still refers
// to the same inode.
//
// Not thread-safe.
class OpenConnections {
 public:
  struct Limits {
    int total = 0;
    int per_address = 0;
  };

  explicit OpenConnections(Limits limits) : limits_(limits) {}

  // Counts the connection `fd` from `peer`, unless that would exceed a limit:
  // then false. All Unix sockets count as one address, as do all ports of one.
  // Costs a system call per open connection now and then: when twice the number
  // last found open is reached, and every 100 ms where one of the limits is, so
  // that a place that became free may be given for so long to nobody.
  bool Add(int fd, const sockaddr_storage& peer, async::MonotonicTime now);

  // Those that were found open last and what came since.
  int num_known() const { return static_cast<int>(connections_.size()); }

 private:
  struct Connection {
    int fd;
    ino_t inode;
    std::string address;
  };

  // Forgets those that were closed.
  void Sweep();
  int CountFrom(const std::string& address) const;

  const Limits limits_;
  std::vector<Connection> connections_;
  absl::flat_hash_map<std::string, int> by_address_;
  size_t sweep_at_ = 64;
  // Not before, at a limit.
  async::MonotonicTime sweep_after_ = async::MonotonicTime::min();
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_CONNECTIONS_H_
