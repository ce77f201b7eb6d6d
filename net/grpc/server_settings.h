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
  // Longest message that is received, in bytes; values above INT_MAX stand for
  // any.
  size_t max_receive_message_bytes;
  // Calls of one connection at a time. Positive.
  int max_calls_per_connection;
  // Metadata of one request, in bytes. Positive.
  int max_metadata_bytes = kMaxMetadataBytes;
  // The longest time that a new connection has for its handshakes.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // A connection whose client pings more often than this is closed. Below the
  // clients' keepalive interval, because timers are not exact.
  absl::Duration min_ping_interval = absl::Seconds(5);
};

// Applies the settings to a server, and with them keepalive pings
// (net/grpc/keepalive.h). Compressed messages are refused, because gRPC checks
// the size of a message only after it is unpacked.
void ApplyServerSettings(const ServerSettings& settings,
                         grpc::ServerBuilder& builder);

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_SERVER_SETTINGS_H_
