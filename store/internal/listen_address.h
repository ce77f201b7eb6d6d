#ifndef HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_
#define HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"

namespace hawser::store::internal {

// Whether a server may listen there now:
//   kInvalidArgument     no such host, or port not within 0..65535.
//   kFailedPrecondition  `host` is not loopback, and only that is allowed.
//   kAlreadyExists       the port is taken.
//   kPermissionDenied    the port needs privileges.
//   kUnavailable         anything else the system says.
absl::Status CheckListenAddress(const std::string& host, int port,
                                bool only_loopback);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_INTERNAL_LISTEN_ADDRESS_H_
