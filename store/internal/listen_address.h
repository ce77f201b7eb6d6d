#ifndef HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_
#define HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace hawser::store::internal {

// Whether `host`, at which a server can listen now, is this machine's loopback:
//   kInvalidArgument     no such host, or port not within 0..65535.
//   kAlreadyExists       the port is taken.
//   kPermissionDenied    the port needs privileges.
//   kUnavailable         anything else the system says.
absl::StatusOr<bool> CheckListenAddress(const std::string& host, int port);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_
