#include "launch/master_endpoint.h"

#include "async/status_macros.h"
#include "launch/environment.h"

namespace hawser::launch {
namespace {

constexpr int kDefaultPort = 29500;

}  // namespace

absl::StatusOr<store::Endpoint> MasterEndpoint(const std::string& address,
                                               std::optional<int> port) {
  store::Endpoint master;
  master.host = StringOrEnvironment(address, "MASTER_ADDR", "127.0.0.1");
  ASSIGN_OR_RETURN(port, IntOrEnvironment(port, "MASTER_PORT"));
  master.port = port.value_or(kDefaultPort);
  return master;
}

}  // namespace hawser::launch
