#ifndef HAWSER_STORE_GRPC_SETTINGS_H_
#define HAWSER_STORE_GRPC_SETTINGS_H_

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "store/grpc/server_limits.h"
#include "store/store_limits.h"

namespace hawser::store::internal {

// gRPC settings of both ends of the store. They depend on each other: the
// server must allow the client's pings.

// Client settings: pings every 10 s with a timeout of 5 s, reconnects after 0.1
// to 2 s, uses no HTTP proxy and does not share its connection.
grpc::ChannelArguments ClientSettings();

// Server settings: limits messages, their memory, streams and pings; rejects
// compressed messages, since they are decompressed before their size is
// checked; does not share its port.
void ApplyServerSettings(const StoreLimits& limits,
                         const StoreServerLimits& server_limits,
                         grpc::ServerBuilder* builder);

// Converts a status, keeping its code and message.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_SETTINGS_H_
