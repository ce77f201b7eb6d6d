// Conversion between Abseil and gRPC statuses.

#ifndef HAWSER_RPC_GRPC_STATUS_H_
#define HAWSER_RPC_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hawser::rpc {

// Converts code, message and payloads; the payloads have the layout of
// google.rpc.Status, so that any gRPC client can read them. Long messages are
// truncated and payloads above a few KiB omitted, because gRPC limits trailers.
::grpc::Status ToGrpcStatus(const absl::Status& status);

// Converts the status of an untrusted peer; accepts at most the size that
// ToGrpcStatus sends.
absl::Status FromGrpcStatus(const ::grpc::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_STATUS_H_
