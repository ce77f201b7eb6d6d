// Settings of every gRPC server of a job.
#ifndef HAWSER_NET_GRPC_SERVER_SETTINGS_H_
#define HAWSER_NET_GRPC_SERVER_SETTINGS_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "net/grpc/metadata_limit.h"

namespace hawser::net {

struct ServerSettings {
  // Name of the server's memory quota, for gRPC's debug output.
  std::string quota_name;
  // Bytes of memory for messages and buffers. Positive.
  size_t memory_quota_bytes;
  // Maximum size of a received message, in bytes; values above INT_MAX mean no
  // limit.
  size_t max_receive_message_bytes;
  // Maximum number of concurrent calls per connection. Positive.
  int max_calls_per_connection;
  // Maximum size of the metadata of a request, in bytes. Positive.
  int max_metadata_bytes = kMaxMetadataBytes;
  // Time for a new connection to complete its handshakes.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // A connection whose client pings more often than this is closed. Shorter
  // than the clients' keepalive interval, since timers are inexact.
  absl::Duration min_ping_interval = absl::Seconds(5);
};

// Applies the settings to a server, and with them keepalive pings
// (net/grpc/keepalive.h). Compressed messages are rejected, because gRPC checks
// the size of a message only after decompression.
void ApplyServerSettings(const ServerSettings& settings,
                         grpc::ServerBuilder& builder);

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_SERVER_SETTINGS_H_
