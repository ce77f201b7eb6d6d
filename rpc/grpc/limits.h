// Limits of a worker's gRPC server.

#ifndef HAWSER_RPC_GRPC_LIMITS_H_
#define HAWSER_RPC_GRPC_LIMITS_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "net/grpc/metadata_limit.h"

namespace hawser::rpc {

// Limits of the server of one transport. What exceeds one is refused, and the
// process and other peers go on; docs/rpc/limits.md says how each shows.
struct GrpcLimits {
  // Connections open at once, and from one address.
  int max_connections = 16384;
  int max_connections_per_address = 4096;
  // Descriptors that connections leave to the rest of the process.
  int reserved_descriptors = 32;
  // Calls at once on one connection; further ones wait at the caller. Callers
  // open another connection after 200.
  int max_calls_per_connection = 256;
  // Of a request that comes as one message. Longer ones come in fragments
  // (proto/fragments.proto), as workers send those above 2 MiB, up to
  // GrpcTransportOptions::max_message_bytes.
  size_t max_whole_request_bytes = size_t{64} << 20;
  // Headers of one call.
  int max_metadata_bytes = net::kMaxMetadataBytes;
  // Until a new connection has said something sensible, TLS included.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // A connection without calls is closed after the first; one of the second,
  // with random tenths more or less, takes no more calls, and is closed when
  // those that it has have ended, at the latest after the third. Callers open
  // another one; a call on its way in that moment ends with kUnavailable, and
  // is not sent again. For clients that come and go, and load balancers:
  // workers of a job ask after each other, so that their connections are never
  // idle for long.
  absl::Duration max_connection_idle = absl::InfiniteDuration();
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration max_connection_age_grace = absl::InfiniteDuration();
  // A peer that keeps sending keepalive pings more often is cut off. Peers
  // ask every 10 s.
  absl::Duration min_ping_interval = absl::Seconds(5);
  // Memory of all messages that are being received or waited with. Under
  // pressure gRPC first reads less, then closes idle connections and cancels
  // calls. As much again may be taken by requests that come in fragments, of
  // which not all are here; by those of one peer, a certificate's or, without
  // TLS, a connection's, half of that, though never less than the longest
  // message. Unset: half of the machine's.
  std::optional<size_t> memory_quota_bytes = {};
  // A request in fragments of which none came for so long, up to twice that, is
  // given up.
  absl::Duration fragment_timeout = absl::Seconds(20);
};

// As gRPC has sizes; INT_MAX for those that it cannot have.
int ToIntLimit(size_t bytes);

// The limit, or what it is if unset.
size_t MemoryQuotaBytes(const GrpcLimits& limits);

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const GrpcLimits& limits);

// Sets everything but the limits on connections and descriptors, which are the
// listener's, and turns compression off: gRPC decompresses before it looks at
// the size. `max_message_bytes`: of a reply, and of a request if it is less
// than the limit.
void ConfigureServer(const GrpcLimits& limits, size_t max_message_bytes,
                     ::grpc::ServerBuilder& builder);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_LIMITS_H_
