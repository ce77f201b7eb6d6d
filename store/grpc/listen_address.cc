#include "store/grpc/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

absl::StatusOr<bool> CheckListenAddress(const std::string& host, int port) {
  const std::string name = ToString(Endpoint{host, port});
  if (host.empty() || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", name,
                     ": expected a host and a port within 0..65535"));
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
  return loopback;
}

}  // namespace hawser::store::internal
