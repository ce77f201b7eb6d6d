// Listening sockets of a server.

#ifndef HAWSER_NET_SERVER_LISTENING_SOCKET_H_
#define HAWSER_NET_SERVER_LISTENING_SOCKET_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::net {

// The sockets that listen at one address: one for each IP address that the host
// name resolves to. Connections queue up as soon as they are open.
class ListeningSocket {
 public:
  // `address` is "host:port", "[v6]:port" or "unix:/path". Port 0 selects a
  // free port; a port is never shared with another process. A path left behind
  // by a server that has ended is replaced. A path has mode 0600 from its
  // creation, less the umask.
  //
  // Errors name the address:
  //   kInvalidArgument   the address is malformed, or not of this machine.
  //   kAlreadyExists     another process listens there.
  //   kPermissionDenied  the system denies the address to this user.
  //   kUnavailable       other system errors, including lack of descriptors.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Open(
      std::string_view address);

  // Stops listening and removes the path.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  // Non-blocking descriptors.
  const std::vector<int>& descriptors() const { return descriptors_; }
  // The address as given, with the port actually bound.
  const std::string& address() const { return address_; }
  // The port; 0 for a path.
  int port() const { return port_; }

 private:
  ListeningSocket() = default;

  absl::Status OpenPath(const std::string& path);
  absl::Status OpenHost(const std::string& host, const std::string& port);

  std::string address_;
  std::string path_;
  int port_ = 0;
  std::vector<int> descriptors_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_LISTENING_SOCKET_H_
