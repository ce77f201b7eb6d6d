// Calls that the connections of this process's gRPC servers have open.

#ifndef HAWSER_NET_SERVER_OPEN_CALLS_H_
#define HAWSER_NET_SERVER_OPEN_CALLS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"

namespace hawser::net {

// Identifies the TCP connection of a client: its address and port.
using ConnectionKey = std::string;

// Empty for other addresses than those of IP.
ConnectionKey KeyOfPeer(const sockaddr_storage& peer);

struct ConnectionCalls {
  ConnectionKey connection;
  // HTTP/2 streams that the client opened and that have not ended.
  int64_t open_calls = 0;
  // Messages received so far.
  int64_t messages = 0;
};

// Counts the calls of the TCP connections of this process's gRPC servers by
// gRPC's channelz: also calls whose request has not arrived, which no handler
// has seen. Not thread-safe.
class OpenCalls {
 public:
  // The calls of each connection. Costs some 40 us per connection.
  std::vector<ConnectionCalls> CountAll();
  // Those of `connections`, at this cost for each of them and for each
  // connection that is new, and some 1 us for each other one.
  std::vector<ConnectionCalls> CountOf(
      const absl::flat_hash_set<ConnectionKey>& connections);

 private:
  std::vector<ConnectionCalls> Count(
      absl::FunctionRef<bool(const ConnectionKey&)> wanted);

  // The connection of each socket of channelz; empty without an IP address.
  absl::flat_hash_map<int64_t, ConnectionKey> connections_;
};

namespace internal {

// Reads channelz's description of a socket, in JSON. False if it has no IP
// address.
bool ParseSocket(const std::string& json, ConnectionCalls& calls);

}  // namespace internal
}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_CALLS_H_
