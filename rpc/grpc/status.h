// Conversion between Abseil statuses with payloads and gRPC statuses.

#ifndef HAWSER_RPC_GRPC_STATUS_H_
#define HAWSER_RPC_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hawser::rpc {

// Converts as net::ToGrpcStatus, with the payloads, which have the layout of
// google.rpc.Status, so that any gRPC client can read them. Payloads above a
// few KiB are omitted, because gRPC limits trailers.
::grpc::Status ToGrpcStatus(const absl::Status& status);

// Converts as net::FromGrpcStatus, with the payloads, unless they are malformed
// or larger than those that ToGrpcStatus sends.
absl::Status FromGrpcStatus(const ::grpc::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_STATUS_H_
