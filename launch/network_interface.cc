#include "launch/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hawser::launch {
namespace {

// `address` as text; empty if peers cannot connect to it.
std::string Written(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> AddressOfInterface(const std::string& name) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return absl::ErrnoToStatus(errno, "cannot list the network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first,
                                                               &freeifaddrs);
  std::set<std::string> names;
  std::string v6;
  for (const ifaddrs* entry = first; entry != nullptr;
       entry = entry->ifa_next) {
    names.insert(entry->ifa_name);
    if (entry->ifa_name != name || entry->ifa_addr == nullptr) continue;
    const std::string address = Written(*entry->ifa_addr);
    if (address.empty()) continue;
    if (entry->ifa_addr->sa_family == AF_INET) return address;
    if (v6.empty()) v6 = address;
  }
  if (!v6.empty()) return v6;
  if (!names.contains(name)) {
    return absl::NotFoundError(
        absl::StrCat("this machine has no network interface '", name,
                     "'; it has ", absl::StrJoin(names, ", ")));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the network interface '", name,
      "' lacks an address that peers can reach: configure one, or name another "
      "interface"));
}

}  // namespace hawser::launch
