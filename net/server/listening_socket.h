// Sockets that connections arrive at.

#ifndef HAWSER_NET_SERVER_LISTENING_SOCKET_H_
#define HAWSER_NET_SERVER_LISTENING_SOCKET_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::net {

// The sockets that listen at one address: one for each address that a host's
// name stands for. Connections queue up from the beginning on.
class ListeningSocket {
 public:
  // "host:port", "[v6]:port" or "unix:/path". Port 0 is any free one; a port
  // is never shared with another process. A path that a server left behind is
  // taken over. A path has mode 0600, whatever the umask allows, from the
  // moment that it is there.
  //
  // Errors name the address:
  //   kInvalidArgument   it is malformed, or not of this machine.
  //   kAlreadyExists     another process listens there.
  //   kPermissionDenied  the system allows it to others only.
  //   kUnavailable       anything else the system says, also when no
  //                      descriptors are left.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Open(
      std::string_view address);

  // Stops listening and removes the path.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  // Non-blocking descriptors.
  const std::vector<int>& descriptors() const { return descriptors_; }
  // As given, with the port that was chosen.
  const std::string& address() const { return address_; }
  // 0 for a path.
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
