// Translation between absl::Status and grpc::Status.
#ifndef HAWSER_NET_GRPC_STATUS_H_
#define HAWSER_NET_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hawser::net {

// Converts code and message, but not payloads; for those see rpc/grpc/status.h.
// ToGrpcStatus makes the message fit trailers (net/wire_text.h).
grpc::Status ToGrpcStatus(const absl::Status& status);

// Converts the status of an untrusted peer: an unknown code becomes kUnknown,
// and the message is converted by ToErrorText.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_STATUS_H_
