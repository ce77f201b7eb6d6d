#ifndef HAWSER_STORE_ENDPOINT_H_
#define HAWSER_STORE_ENDPOINT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::store {

// Host and port of a server.
struct Endpoint {
  // Host name or IP address; an IPv6 address without brackets.
  std::string host = {};
  // 0..65535. 0 stands for any free port, or for a port set elsewhere.
  int port = 0;

  bool operator==(const Endpoint&) const = default;
};

// Parses "host:port" or "[v6]:port". kInvalidArgument, with the reason, if
// malformed.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Formats `endpoint` so that ParseEndpoint can parse it.
std::string ToString(const Endpoint& endpoint);

}  // namespace hawser::store

#endif  // HAWSER_STORE_ENDPOINT_H_
