// Errors as messages, and back.

#ifndef HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
#define HAWSER_RPC_ERRORS_STATUS_DETAILS_H_

#include "absl/status/status.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {

// Code, message and payloads of `status`. Long messages are cut and payloads
// above a few KiB left out, because gRPC limits trailers.
v1::StatusDetails ToStatusDetails(const absl::Status& status);

// From a peer, which is not trusted: an unknown code is kUnknown, a long
// message is cut. OK if the code says so.
absl::Status FromStatusDetails(const v1::StatusDetails& details);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_STATUS_DETAILS_H_
