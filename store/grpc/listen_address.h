#ifndef HAWSER_STORE_GRPC_LISTEN_ADDRESS_H_
#define HAWSER_STORE_GRPC_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace hawser::store::internal {

// Returns true if `host` is reachable only from this machine. Does not check
// that a server can listen there.
//
//   kInvalidArgument  no such host, or port not within 0..65535.
absl::StatusOr<bool> CheckListenAddress(const std::string& host, int port);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_LISTEN_ADDRESS_H_
