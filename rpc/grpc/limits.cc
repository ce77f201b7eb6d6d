#include "rpc/grpc/limits.h"

#include <algorithm>
#include <climits>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/server_builder.h"
#include "net/grpc/server_settings.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "telemetry/process_memory.h"

namespace hawser::rpc {
namespace {

// INT_MAX means no limit.
int ToMs(absl::Duration duration) {
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1, INT_MAX));
}

}  // namespace

int ToIntLimit(size_t bytes) {
  return static_cast<int>(std::min<size_t>(bytes, INT_MAX));
}

size_t MemoryQuotaBytes(const GrpcLimits& limits) {
  return limits.memory_quota_bytes.has_value()
             ? *limits.memory_quota_bytes
             : telemetry::UsableMemoryBytes() / 4;
}

absl::Status Validate(const GrpcLimits& limits) {
  const auto check = [](bool valid, absl::string_view name) {
    return valid ? absl::OkStatus()
                 : absl::InvalidArgumentError(
                       absl::StrCat("GrpcLimits::", name, " must be positive"));
  };
  absl::Status status = check(limits.max_connections > 0, "max_connections");
  status.Update(check(limits.max_connections_per_address > 0,
                      "max_connections_per_address"));
  // 0 has the same effect.
  status.Update(
      check(limits.reserved_descriptors >= 0, "reserved_descriptors"));
  status.Update(
      check(limits.max_calls_per_connection > 0, "max_calls_per_connection"));
  if (limits.max_whole_request_bytes < kMaxWholeRequest) {
    status.Update(absl::InvalidArgumentError(absl::StrCat(
        "GrpcLimits::max_whole_request_bytes must be at least ",
        kMaxWholeRequest,
        ", the size up to which workers send requests as one message")));
  }
  status.Update(check(limits.max_metadata_bytes > 0, "max_metadata_bytes"));
  status.Update(check(limits.handshake_timeout > absl::ZeroDuration(),
                      "handshake_timeout"));
  status.Update(check(limits.max_connection_idle > absl::ZeroDuration(),
                      "max_connection_idle"));
  status.Update(check(limits.max_connection_age > absl::ZeroDuration(),
                      "max_connection_age"));
  status.Update(check(limits.max_connection_age_grace > absl::ZeroDuration(),
                      "max_connection_age_grace"));
  status.Update(check(limits.min_ping_interval > absl::ZeroDuration(),
                      "min_ping_interval"));
  status.Update(
      check(limits.memory_quota_bytes.value_or(1) > 0, "memory_quota_bytes"));
  status.Update(check(limits.memory_watermark_bytes.value_or(1) > 0,
                      "memory_watermark_bytes"));
  status.Update(check(limits.fragment_timeout > absl::ZeroDuration(),
                      "fragment_timeout"));
  return status;
}

void ConfigureServer(const GrpcLimits& limits, size_t max_message_bytes,
                     ::grpc::ServerBuilder& builder) {
  net::ApplyServerSettings(
      {.quota_name = "hawser.rpc",
       .memory_quota_bytes = MemoryQuotaBytes(limits),
       .max_receive_message_bytes =
           std::min(max_message_bytes, limits.max_whole_request_bytes),
       .max_calls_per_connection = limits.max_calls_per_connection,
       .max_metadata_bytes = limits.max_metadata_bytes,
       .handshake_timeout = limits.handshake_timeout,
       .min_ping_interval = limits.min_ping_interval},
      builder);
  builder.SetMaxSendMessageSize(ToIntLimit(max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             ToMs(limits.max_connection_idle));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             ToMs(limits.max_connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                             ToMs(limits.max_connection_age_grace));
}

}  // namespace hawser::rpc
