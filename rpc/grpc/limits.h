// Limits of a worker's gRPC server.

#ifndef HAWSER_RPC_GRPC_LIMITS_H_
#define HAWSER_RPC_GRPC_LIMITS_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "net/grpc/metadata_limit.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace hawser::rpc {

// Limits of the server of one transport. Work above a limit is rejected without
// affecting the process or other peers; docs/rpc/limits.md describes the effect
// of each.
struct GrpcLimits {
  // Maximum number of open connections, in total and per client address.
  int max_connections = 16384;
  int max_connections_per_address = 4096;
  // File descriptors reserved for the rest of the process.
  int reserved_descriptors = 32;
  // Concurrent calls per connection; further calls wait at the caller. Callers
  // open another connection after 200. The connection of a client that opens
  // more regardless is closed within seconds.
  int max_calls_per_connection = 256;
  // Maximum size of a request sent as one message. Longer requests must be sent
  // in fragments (proto/fragments.proto), as workers do above 2 MiB, up to
  // GrpcTransportOptions::max_message_bytes.
  size_t max_whole_request_bytes = size_t{64} << 20;
  // Maximum size of the metadata of a call.
  int max_metadata_bytes = net::kMaxMetadataBytes;
  // Time for a new connection to complete its handshake, including TLS.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // A connection without calls is closed after max_connection_idle. A
  // connection of max_connection_age, plus or minus a random tenth, accepts no
  // more calls and is closed when its calls have ended, at the latest after
  // max_connection_age_grace. Callers then open another one; a call in transit
  // at that moment ends with kUnavailable and is not retried. Meant for
  // transient clients and load balancers: connections between workers of a job
  // carry heartbeats and are never idle for long.
  absl::Duration max_connection_idle = absl::InfiniteDuration();
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration max_connection_age_grace = absl::InfiniteDuration();
  // The connection of a peer that persistently sends keepalive pings more often
  // is closed. Workers send pings every 10 s.
  absl::Duration min_ping_interval = absl::Seconds(5);
  // Memory of all messages being received. Under pressure gRPC first reads
  // less, then closes idle connections and cancels calls. Incomplete requests
  // in fragments may use the same amount in addition, as may replies that peers
  // have not read; those of one peer (a certificate or, without TLS, a
  // connection) half of that, but at least the size of the longest message.
  // Unset: a quarter of what the process may use.
  std::optional<size_t> memory_quota_bytes = {};
  // While the process uses more memory and grows, the connection that has sent
  // the most bytes which complete no messages is closed: gRPC keeps 60 to 160
  // bytes for each byte of a call's headers until they end. Likewise above
  // an eighth of it, if the process grows by 8 times what all clients send.
  // Unset: three quarters of what the process may use.
  std::optional<size_t> memory_watermark_bytes = {};
  // A request in fragments is cancelled if no fragment arrives for this time,
  // or at most twice this time.
  absl::Duration fragment_timeout = absl::Seconds(20);
};

// Converts a size to gRPC's type; INT_MAX if it does not fit.
int ToIntLimit(size_t bytes);

// Returns the limit, or its default if unset.
size_t MemoryQuotaBytes(const GrpcLimits& limits);

// kInvalidArgument, naming the limit, if a limit is not positive.
absl::Status Validate(const GrpcLimits& limits);

// Applies all limits except those on connections and descriptors, which the
// listener enforces. Disables compression, since gRPC decompresses before it
// checks the size. `max_message_bytes` limits replies, and requests if it is
// less than their limit.
void ConfigureServer(const GrpcLimits& limits, size_t max_message_bytes,
                     ::grpc::ServerBuilder& builder);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_LIMITS_H_
