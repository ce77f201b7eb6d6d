#include "rpc/peers/call_quota.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

constexpr char kOptions[] = "AgentOptions::limits.";

// The limit of an option that may not have been validated.
net::PerPeerQuota::Limit LimitOf(int max, absl::string_view option) {
  return {.max = static_cast<size_t>(std::max(max, 0)),
          .option = absl::StrCat(kOptions, option)};
}

absl::Status NotPositive(absl::string_view limit) {
  return absl::InvalidArgumentError(
      absl::StrCat(kOptions, limit, " must be positive"));
}

}  // namespace

absl::Status Validate(const CallLimits& limits) {
  if (limits.max_calls <= 0) return NotPositive("max_calls");
  if (limits.max_calls_per_peer <= 0) return NotPositive("max_calls_per_peer");
  if (limits.max_request_bytes_per_peer == 0) {
    return NotPositive("max_request_bytes_per_peer");
  }
  return absl::OkStatus();
}

CallQuota::CallQuota(const CallLimits& limits)
    : quota_(
          {.items = "calls",
           .advice = "make fewer concurrent calls",
           .items_in_total = LimitOf(limits.max_calls, "max_calls"),
           .items_per_peer =
               LimitOf(limits.max_calls_per_peer, "max_calls_per_peer"),
           .bytes_per_peer = {.max = limits.max_request_bytes_per_peer,
                              .option = absl::StrCat(
                                  kOptions, "max_request_bytes_per_peer")}}) {}

absl::StatusOr<CallQuota::Reservation> CallQuota::Admit(const std::string& peer,
                                                        size_t request_bytes) {
  return quota_.Admit(peer, request_bytes);
}

}  // namespace hawser::rpc
