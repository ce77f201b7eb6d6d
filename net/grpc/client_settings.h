// Settings of the gRPC channels between the processes of a job.
#ifndef HAWSER_NET_GRPC_CLIENT_SETTINGS_H_
#define HAWSER_NET_GRPC_CLIENT_SETTINGS_H_

#include "grpcpp/support/channel_arguments.h"
#include "net/grpc/keepalive.h"

namespace hawser::net {

// A channel with these arguments
//   - detects a dead connection by keepalive pings (net/grpc/keepalive.h), or
//     when sent data is not acknowledged for `keepalive_timeout_ms`, and
//     reconnects after 0.1 s to 2 s, with 10 s for each attempt,
//   - does not share its connection with other channels or use a proxy,
//   - does not retry calls,
//   - neither compresses nor decompresses messages, since gRPC checks the size
//     of a message only after decompression,
//   - receives messages of any size, and kMaxMetadataBytes of metadata.
grpc::ChannelArguments ClientSettings(
    int keepalive_timeout_ms = kKeepaliveTimeoutMs);

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_CLIENT_SETTINGS_H_
