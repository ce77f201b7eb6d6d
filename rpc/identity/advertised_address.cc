#include "rpc/identity/advertised_address.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/wire_text.h"
#include "store/endpoint.h"

namespace hawser::rpc {

absl::StatusOr<std::string> AdvertisedAddress(std::string_view advertised,
                                              std::string_view serving) {
  // Addresses of some transports have no port.
  const absl::StatusOr<store::Endpoint> bound = store::ParseEndpoint(serving);
  if (advertised.empty()) {
    if (bound.ok() && (bound->host == "0.0.0.0" || bound->host == "::")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the worker serves at ", ToString(*bound),
          ", a wildcard address: set AgentOptions::advertise_address to the "
          "address at which peers can reach it"));
    }
    RETURN_IF_ERROR(net::CheckUtf8("the address of the worker", serving));
    return std::string(serving);
  }
  RETURN_IF_ERROR(
      net::CheckUtf8("AgentOptions::advertise_address", advertised));
  ASSIGN_OR_RETURN(store::Endpoint endpoint, store::ParseEndpoint(advertised));
  if (endpoint.port == 0) {
    RETURN_IF_ERROR(bound.status());
    endpoint.port = bound->port;
  }
  return ToString(endpoint);
}

}  // namespace hawser::rpc
