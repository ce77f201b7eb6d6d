// Calls that the connections of this process's gRPC servers have open.

#ifndef HAWSER_NET_SERVER_OPEN_CALLS_H_
#define HAWSER_NET_SERVER_OPEN_CALLS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

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

// Returns the calls of each TCP connection of each gRPC server of the process,
// as gRPC's channelz counts them: also calls whose request has not arrived,
// which no handler has seen. Costs some 40 us per connection.
std::vector<ConnectionCalls> CountOpenCalls();

namespace internal {

// Reads channelz's description of a socket, in JSON. False if it has no IP
// address.
bool ParseSocket(const std::string& json, ConnectionCalls& calls);

}  // namespace internal
}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_OPEN_CALLS_H_
