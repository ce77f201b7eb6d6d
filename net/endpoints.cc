#include "net/endpoints.h"

#include <netdb.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace hawser::net {

std::vector<Endpoint> EndpointsOf(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) {
    const std::string path = address.substr(kUnix.size());
    sockaddr_un local = {};
    if (path.size() >= sizeof(local.sun_path)) return {};
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, path.data(), path.size());
    Endpoint endpoint{.size = sizeof(local)};
    std::memcpy(&endpoint.address, &local, sizeof(local));
    return {endpoint};
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) !=
      0) {
    return {};
  }
  std::vector<Endpoint> endpoints;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    Endpoint endpoint{.size = a->ai_addrlen};
    std::memcpy(&endpoint.address, a->ai_addr, a->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  return endpoints;
}

Connecting StartToConnect(const Endpoint& endpoint) {
  Connecting made{.fd = socket(endpoint.address.ss_family,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (made.fd < 0 || connect(made.fd, address, endpoint.size) != 0) {
    made.error = errno;
  }
  return made;
}

}  // namespace hawser::net
