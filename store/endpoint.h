#ifndef HAWSER_STORE_ENDPOINT_H_
#define HAWSER_STORE_ENDPOINT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::store {

// A port of a machine.
struct Endpoint {
  // A name or an address; an IPv6 address without brackets.
  std::string host = {};
  // 0..65535. 0: any free one, or one that is known elsewhere.
  int port = 0;

  bool operator==(const Endpoint&) const = default;
};

// Reads "host:port" or "[v6]:port". kInvalidArgument says what is wrong.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Writes it so that it can be read again.
std::string ToString(const Endpoint& endpoint);

}  // namespace hawser::store

#endif  // HAWSER_STORE_ENDPOINT_H_
