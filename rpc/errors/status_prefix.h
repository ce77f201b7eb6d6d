// Prefixes of error messages.

#ifndef HAWSER_RPC_ERRORS_STATUS_PREFIX_H_
#define HAWSER_RPC_ERRORS_STATUS_PREFIX_H_

#include <string_view>

#include "absl/status/status.h"

namespace hawser::rpc {

// Returns `status` with `prefix` and ": " prepended to its message. Code and
// payloads are kept.
absl::Status WithPrefix(std::string_view prefix, const absl::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_STATUS_PREFIX_H_
