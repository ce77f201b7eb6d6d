// Conversion of error statuses to messages and back.

#ifndef HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
#define HAWSER_RPC_ERRORS_STATUS_DETAILS_H_

#include "absl/status/status.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {

// Returns code, message and payloads of `status`. Long messages are truncated
// and payloads above a few KiB omitted, because gRPC limits trailers.
v1::StatusDetails ToStatusDetails(const absl::Status& status);

// Converts details from an untrusted peer: an unknown code becomes kUnknown,
// and a long message is truncated. Returns OK if the code is OK.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
