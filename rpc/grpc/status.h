// Errors as gRPC's, and back.

#ifndef HAWSER_RPC_GRPC_STATUS_H_
#define HAWSER_RPC_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hawser::rpc {

// Code, message and payloads; the latter in the layout of google.rpc.Status, so
// that any gRPC client can read them. Long messages are cut and payloads above
// a few KiB left out, because gRPC limits trailers.
::grpc::Status ToGrpcStatus(const absl::Status& status);

// From a peer, which is not trusted: takes at most as much as the above sends.
absl::Status FromGrpcStatus(const ::grpc::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_STATUS_H_
