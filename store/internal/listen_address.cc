#include "store/internal/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "store/endpoint.h"

namespace hawser::store::internal {
namespace {

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  }
  return false;
}

// Binds and lets go: gRPC itself does not say why it could not.
absl::Status TryBind(const addrinfo& address, const std::string& name) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", name, ": no socket, errno ", errno));
  }
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int result = bind(fd, address.ai_addr, address.ai_addrlen);
  const int error = result == 0 ? 0 : errno;
  close(fd);
  switch (error) {
    case 0:
      return absl::OkStatus();
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat(
          "cannot listen on ", name,
          ": the port is in use; end its user or choose another, or 0"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("cannot listen on ", name, ": no permission"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot listen on ", name, ": not an address of this machine"));
    default:
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", name, ": errno ", error));
  }
}

}  // namespace

absl::StatusOr<bool> CheckListenAddress(const std::string& host, int port) {
  const std::string name = ToString(Endpoint{host, port});
  if (host.empty() || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", name,
                     ": wants a host and a port within 0..65535"));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", name, ": ", gai_strerror(error)));
  }
  bool loopback = true;
  for (const addrinfo* address = found; address != nullptr;
       address = address->ai_next) {
    loopback = loopback && IsLoopback(*address->ai_addr);
  }
  RETURN_IF_ERROR(TryBind(*found, name));
  return loopback;
}

}  // namespace hawser::store::internal
