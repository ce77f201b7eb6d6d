#include "net/server/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "async/status_macros.h"

namespace hawser::net {
namespace {

absl::Status Failure(absl::string_view address, int error) {
  const std::string message = absl::StrCat("cannot listen at '", address, "'");
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(message,
                       ": the address is in use; stop the process that uses "
                       "it, or choose another port, or port 0"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(message, ": permission denied"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(
          absl::StrCat(message, ": not an address of this machine"));
    default:
      return absl::UnavailableError(
          absl::StrCat(message, ": ", std::strerror(error)));
  }
}

// Closes `fd` after an error, keeping errno; returns -1.
int Closed(int fd) {
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Returns a listening socket at `address`, or -1 with errno set.
int Listen(const sockaddr* address, socklen_t size) {
  const int fd =
      socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  } else if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
    // Linux gives the path the mode of the bound socket, less the umask. The
    // umask cannot be changed here, as other threads use it too.
    return Closed(fd);
  }
  if (address->sa_family == AF_INET6) {
    // "[::]" also accepts IPv4 connections.
    const int off = 0;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd, address, size) != 0 || listen(fd, SOMAXCONN) != 0) {
    return Closed(fd);
  }
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    return ntohs(v6.sin6_port);
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof(v4));
  return ntohs(v4.sin_port);
}

void SetPort(sockaddr* address, int port) {
  const in_port_t wire = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = wire;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = wire;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::Open(
    std::string_view address) {
  std::unique_ptr<ListeningSocket> result(new ListeningSocket());
  absl::string_view rest(address.data(), address.size());
  result->address_ = std::string(rest);
  if (absl::ConsumePrefix(&rest, "unix:")) {
    RETURN_IF_ERROR(result->OpenPath(std::string(rest)));
    return result;
  }
  const size_t colon = rest.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(rest.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen at '", rest,
        "': expected \"host:port\", \"[v6]:port\" or \"unix:/path\""));
  }
  absl::string_view host = rest.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at '", rest, "': '[' without ']'"));
  }
  RETURN_IF_ERROR(result->OpenHost(std::string(host), absl::StrCat(port)));
  result->address_ = absl::StrCat(rest.substr(0, colon), ":", result->port_);
  return result;
}

absl::Status ListeningSocket::OpenPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen at '", address_, "': a path must have 1 to ",
        sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  int fd = Listen(raw, sizeof(address));
  if (fd < 0 && errno == EADDRINUSE) {
    // Replace an existing socket on which no process listens.
    struct stat file {};
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool dead = probe >= 0 && lstat(path.c_str(), &file) == 0 &&
                      S_ISSOCK(file.st_mode) &&
                      connect(probe, raw, sizeof(address)) != 0 &&
                      errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (!dead) return Failure(address_, EADDRINUSE);
    unlink(path.c_str());
    fd = Listen(raw, sizeof(address));
  }
  if (fd < 0) return Failure(address_, errno);
  descriptors_.push_back(fd);
  path_ = path;
  return absl::OkStatus();
}

absl::Status ListeningSocket::OpenHost(const std::string& host,
                                       const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen at '", address_, "': ", gai_strerror(error)));
  }
  int first_error = 0;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    // All sockets use the port of the first one.
    if (port_ != 0) SetPort(at->ai_addr, port_);
    const int fd = Listen(at->ai_addr, at->ai_addrlen);
    if (fd >= 0) {
      descriptors_.push_back(fd);
      port_ = PortOf(fd);
    } else if (first_error == 0) {
      first_error = errno;
    }
  }
  // A host name may also resolve to an address of a protocol that the machine
  // lacks.
  if (descriptors_.empty()) {
    return Failure(address_, first_error == 0 ? EADDRNOTAVAIL : first_error);
  }
  return absl::OkStatus();
}

ListeningSocket::~ListeningSocket() {
  for (int fd : descriptors_) close(fd);
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace hawser::net
