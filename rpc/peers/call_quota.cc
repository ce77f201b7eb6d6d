#include "rpc/peers/call_quota.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

using Exceeded = net::SharedQuota::Exceeded;

absl::Status NotPositive(absl::string_view limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("AgentOptions::limits.", limit, " must be positive"));
}

absl::Status Exhausted(const std::string& peer, absl::string_view what,
                       absl::string_view limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " worker '", peer, "' exceeds AgentOptions::limits.",
                   limit, "; make fewer concurrent calls or raise the limit"));
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
    : quota_(net::SharedQuota::Create(
          {.max_calls = limits.max_calls,
           .max_calls_per_peer = limits.max_calls_per_peer,
           .max_bytes_per_peer = limits.max_request_bytes_per_peer})) {}

absl::StatusOr<CallQuota::Reservation> CallQuota::Admit(const std::string& peer,
                                                        size_t request_bytes) {
  auto admitted = quota_->Admit(peer, request_bytes);
  if (auto* reservation = std::get_if<Reservation>(&admitted))
    return std::move(*reservation);
  switch (std::get<Exceeded>(admitted)) {
    case Exceeded::kCalls:
      return Exhausted(peer, "a further call of", "max_calls");
    case Exceeded::kCallsPerPeer:
      return Exhausted(peer, "a further call of", "max_calls_per_peer");
    case Exceeded::kBytes:
    case Exceeded::kBytesPerPeer:
      break;
  }
  return Exhausted(peer,
                   absl::StrCat("a request of ", request_bytes, " bytes of"),
                   "max_request_bytes_per_peer");
}

}  // namespace hawser::rpc
