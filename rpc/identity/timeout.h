// Check of the timeouts that callers give.

#ifndef HAWSER_RPC_IDENTITY_TIMEOUT_H_
#define HAWSER_RPC_IDENTITY_TIMEOUT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hawser::rpc {

// kInvalidArgument if `timeout` is negative. Zero is a timeout that has passed,
// and kNoTimeout (rpc/identity/call_options.h) waits for ever.
absl::Status CheckTimeout(absl::Duration timeout);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_TIMEOUT_H_
