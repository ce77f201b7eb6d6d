#include "store/grpc/settings.h"

#include <grpc/compression.h>
#include <grpc/impl/codegen/grpc_types.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <limits>
#include <string>

#include "net/server/metadata_limit.h"

namespace hawser::store::internal {
namespace {

constexpr int kClientPingMs = 10000;
constexpr int kPingTimeoutMs = 5000;
// Shorter than the client's interval, since its timers are inexact.
constexpr int kServerMinPingMs = 5000;

// Limit per connection. Waiting calls are open streams;
// StoreServerLimits::max_waiting_calls_per_client leaves some for other calls.
constexpr int kMaxStreams = 256;

constexpr int kHandshakeTimeoutMs = 10000;

// Space for the keys of a Wait or Check beside the largest value.
constexpr size_t kOtherBytes = size_t{1} << 20;

}  // namespace

grpc::ChannelArguments ClientSettings() {
  grpc::ChannelArguments settings;
  settings.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kClientPingMs);
  settings.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  settings.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  settings.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  settings.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  settings.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  settings.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  settings.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  settings.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // The store itself retries, with the ids of changes.
  settings.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  settings.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                  1 << GRPC_COMPRESS_NONE);
  // gRPC decompresses before it checks the size.
  settings.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // The server enforces the limit; every stored value must be readable.
  settings.SetMaxReceiveMessageSize(-1);
  return settings;
}

void ApplyServerSettings(const StoreLimits& limits,
                         const StoreServerLimits& server_limits,
                         grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("hawser.store");
  quota.Resize(server_limits.memory_quota_bytes);
  builder->SetResourceQuota(quota);
  const size_t max_bytes =
      2 * limits.max_value_bytes + limits.max_key_bytes + kOtherBytes;
  builder->SetMaxReceiveMessageSize(static_cast<int>(
      std::min<size_t>(max_bytes, std::numeric_limits<int>::max())));
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                              net::kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kClientPingMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kServerMinPingMs);
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace hawser::store::internal
