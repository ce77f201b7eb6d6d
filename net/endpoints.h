// Socket addresses of a host.

#ifndef HAWSER_NET_ENDPOINTS_H_
#define HAWSER_NET_ENDPOINTS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

namespace hawser::net {

struct Endpoint {
  sockaddr_storage address = {};
  socklen_t size = 0;
};

// The endpoints of "host:port", "[v6]:port" or "unix:/path", in the order to
// try them. Empty if the address is malformed or the host unknown. Blocks while
// the name is resolved.
std::vector<Endpoint> EndpointsOf(const std::string& address);

struct Connecting {
  // Owned by the caller; -1 if there is no socket.
  int fd = -1;
  // 0 if it is connected, EINPROGRESS if it is connecting; otherwise the error.
  int error = 0;
};

// Starts to connect a new non-blocking socket.
Connecting StartToConnect(const Endpoint& endpoint);

}  // namespace hawser::net

#endif  // HAWSER_NET_ENDPOINTS_H_
