#include "launch/run/port_reservation.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::launch {
namespace {

// Sets the host to that of all addresses.
void SetAnyHost(sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_any;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = INADDR_ANY;
  }
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

absl::Status BindError(int error, const std::string& host, int port) {
  const std::string place = absl::StrCat("port ", port, " of ", host);
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(
        place,
        " is taken by another process: end it, choose another port with "
        "--master-port, or use a free one with --standalone"));
  }
  if (error == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat(place,
                     " needs privileges: choose one above 1023 with "
                     "--master-port"));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("cannot reserve ", place));
}

}  // namespace

absl::StatusOr<PortReservation> PortReservation::Take(const std::string& host,
                                                      int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (resolved != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot resolve the host ",
                                                   host,
                                                   ", at which processes "
                                                   "find rank 0: ",
                                                   gai_strerror(resolved)));
  }
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  sockaddr_storage address = {};
  socklen_t size = found->ai_addrlen;
  std::memcpy(&address, found->ai_addr, size);
  fs::UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return BindError(errno, host, port);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const auto try_bind = [&] {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size);
  };
  int bound = try_bind();
  if (bound != 0 && errno == EADDRNOTAVAIL) {
    SetAnyHost(address);
    bound = try_bind();
  }
  if (bound != 0) return BindError(errno, host, port);
  size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) !=
      0) {
    return BindError(errno, host, port);
  }
  return PortReservation(std::move(fd), PortOf(address));
}

}  // namespace hawser::launch
