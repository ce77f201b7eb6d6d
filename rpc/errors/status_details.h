// Conversion of error statuses to messages and back.

#ifndef HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
#define HAWSER_RPC_ERRORS_STATUS_DETAILS_H_

#include "absl/status/status.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {

// Returns code, message and payloads of `status`. The message is converted by
// net::ToErrorText. Payloads above a few KiB in total are omitted, because gRPC
// limits trailers, as are those whose type URL is not UTF-8.
v1::StatusDetails ToStatusDetails(const absl::Status& status);

// Adds the payloads of `details` to `status`, which is not OK.
void AddPayloads(const v1::StatusDetails& details, absl::Status& status);

// Converts details from an untrusted peer: an unknown code becomes kUnknown,
// and the message is converted by net::ToErrorText. Returns OK if the code is
// OK.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
