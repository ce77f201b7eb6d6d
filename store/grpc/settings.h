#ifndef HAWSER_STORE_GRPC_SETTINGS_H_
#define HAWSER_STORE_GRPC_SETTINGS_H_

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "store/grpc/server_limits.h"
#include "store/store_limits.h"

namespace hawser::store::internal {

// The gRPC settings of the store's two sides, which belong together: the
// server must allow the pings that the client sends.

// Pings every 10 s, gives a silent server up 5 s later, reconnects after 0.1
// to 2 s, never through a proxy, with one connection of its own.
grpc::ChannelArguments ClientSettings();

// Bounds messages, their memory, streams and pings; takes no compressed
// message, since those are unpacked before their size is checked; does not
// share its port.
void ApplyServerSettings(const StoreLimits& limits,
                         const StoreServerLimits& server_limits,
                         grpc::ServerBuilder* builder);

// Same code, same message.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_SETTINGS_H_
