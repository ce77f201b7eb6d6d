// Counts of open connections, in total and by address.

#ifndef HAWSER_NET_SERVER_CONNECTION_LIMITER_H_
#define HAWSER_NET_SERVER_CONNECTION_LIMITER_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "async/clock.h"
#include "net/server/open_calls.h"

namespace hawser::net {

// Counts accepted sockets passed to gRPC, which does not report when it closes
// them. A socket is considered open as long as its descriptor refers to the
// same inode.
//
// Not thread-safe.
class ConnectionLimiter {
 public:
  struct Limits {
    int total = 0;
    int per_address = 0;
  };

  struct Connection {
    int fd = -1;
    ino_t inode = 0;
    // Without its port.
    std::string address = {};
    // Empty for a Unix socket.
    ConnectionKey key = {};
  };

  explicit ConnectionLimiter(Limits limits) : limits_(limits) {}

  // Counts the connection `fd` from `peer`. Returns false if it would exceed a
  // limit. All Unix sockets count as one address, as do all ports of an IP
  // address. Sweeps, at the cost of one system call per open connection, when
  // the count reaches twice the number found open by the last sweep, and at
  // most every 100 ms while a limit is reached. A freed slot may therefore stay
  // unused for up to 100 ms.
  bool Add(int fd, const sockaddr_storage& peer, async::MonotonicTime now);

  // Connections found open by the last sweep, plus those added since.
  int num_known() const { return static_cast<int>(connections_.size()); }
  // Those connections; gRPC may have closed some.
  const std::vector<Connection>& known() const { return connections_; }

  // The address of `peer` without its port, as in Connection.
  static std::string AddressOf(const sockaddr_storage& peer);

  // Whether `fd` refers to the connection.
  static bool IsSame(int fd, const Connection& connection);

 private:
  // Removes closed connections.
  void Sweep();
  int CountFrom(const std::string& address) const;

  const Limits limits_;
  std::vector<Connection> connections_;
  absl::flat_hash_map<std::string, int> by_address_;
  size_t sweep_at_ = 64;
  // Earliest time of the next sweep at a limit.
  async::MonotonicTime sweep_after_ = async::MonotonicTime::min();
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_CONNECTION_LIMITER_H_
