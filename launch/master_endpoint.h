#ifndef HAWSER_LAUNCH_MASTER_ENDPOINT_H_
#define HAWSER_LAUNCH_MASTER_ENDPOINT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "store/endpoint.h"

namespace hawser::launch {

// The address at which rank 0 serves a job's store: `address` and `port` where
// they are set, otherwise the environment variables MASTER_ADDR and
// MASTER_PORT, otherwise 127.0.0.1 and 29500. kInvalidArgument if MASTER_PORT
// is needed and is not an integer.
absl::StatusOr<store::Endpoint> MasterEndpoint(const std::string& address = "",
                                               std::optional<int> port = {});

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_MASTER_ENDPOINT_H_
