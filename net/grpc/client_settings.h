// Settings of the gRPC channels between the processes of a job.
#ifndef HAWSER_NET_GRPC_CLIENT_SETTINGS_H_
#define HAWSER_NET_GRPC_CLIENT_SETTINGS_H_

#include "grpcpp/support/channel_arguments.h"

namespace hawser::net {

// A channel with these arguments
//   - detects a dead connection by keepalive pings (net/grpc/keepalive.h) and
//     connects again after 0.1 s to 2 s,
//   - shares no connection with other channels and uses no proxy,
//   - never repeats a call by itself,
//   - sends nothing compressed, and does not unpack what is: gRPC checks the
//     size of a message only after it is unpacked,
//   - receives messages of any size, and kMaxMetadataBytes of metadata.
grpc::ChannelArguments ClientSettings();

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_CLIENT_SETTINGS_H_
