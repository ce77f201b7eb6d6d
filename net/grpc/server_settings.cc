#include "net/grpc/server_settings.h"

#include <algorithm>
#include <climits>
#include <cstdint>

#include "grpc/compression.h"
#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/resource_quota.h"
#include "net/grpc/keepalive.h"

namespace hawser::net {
namespace {

// INT_MAX means no limit.
int ToMs(absl::Duration duration) {
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1, INT_MAX));
}

}  // namespace

void ApplyServerSettings(const ServerSettings& settings,
                         grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota(settings.quota_name);
  quota.Resize(settings.memory_quota_bytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(static_cast<int>(
      std::min<size_t>(settings.max_receive_message_bytes, INT_MAX)));
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             settings.max_calls_per_connection);
  // net/server/open_calls.h reads its counts. It is served only by programs
  // that link //rpc/grpc:channelz.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             settings.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             ToMs(settings.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      ToMs(settings.min_ping_interval));
}

}  // namespace hawser::net
