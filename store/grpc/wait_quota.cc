#include "store/grpc/wait_quota.h"

#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace hawser::store::internal {
namespace {

using Exceeded = net::SharedQuota::Exceeded;

// One copy in the request and one in the table. The overhead is rounded up from
// that of strings and their containers.
constexpr size_t kCopies = 2;
constexpr size_t kKeyBytes = 64;

size_t BytesOf(std::span<const std::string> keys) {
  size_t bytes = 0;
  for (const std::string& key : keys) bytes += kKeyBytes + key.size();
  return kCopies * bytes;
}

absl::Status Exhausted(const std::string& client, absl::string_view what,
                       absl::string_view limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " ", client, " exceeds StoreServerLimits::", limit,
                   "; wait for several keys in one call, wait for fewer keys, "
                   "or raise the limit"));
}

}  // namespace

absl::Status Validate(const StoreServerLimits& limits) {
  const auto check = [](bool valid, absl::string_view name) {
    return valid ? absl::OkStatus()
                 : absl::InvalidArgumentError(absl::StrCat(
                       "StoreServerLimits::", name, " must be positive"));
  };
  absl::Status status =
      check(limits.max_waiting_calls > 0, "max_waiting_calls");
  status.Update(check(limits.max_waiting_calls_per_client > 0,
                      "max_waiting_calls_per_client"));
  status.Update(check(limits.max_waiting_bytes > 0, "max_waiting_bytes"));
  status.Update(check(limits.max_waiting_bytes_per_client > 0,
                      "max_waiting_bytes_per_client"));
  status.Update(check(limits.max_stored_bytes_per_client > 0,
                      "max_stored_bytes_per_client"));
  status.Update(check(limits.memory_quota_bytes > 0, "memory_quota_bytes"));
  return status;
}

WaitQuota::WaitQuota(const StoreServerLimits& limits)
    : quota_(net::SharedQuota::Create(
          {.max_calls = limits.max_waiting_calls,
           .max_calls_per_peer = limits.max_waiting_calls_per_client,
           .max_bytes = limits.max_waiting_bytes,
           .max_bytes_per_peer = limits.max_waiting_bytes_per_client})) {}

absl::StatusOr<WaitQuota::Reservation> WaitQuota::Admit(
    const std::string& client, std::span<const std::string> keys) {
  const size_t bytes = BytesOf(keys);
  auto admitted = quota_->Admit(client, bytes);
  if (auto* reservation = std::get_if<Reservation>(&admitted))
    return std::move(*reservation);
  const Exceeded exceeded = std::get<Exceeded>(admitted);
  switch (exceeded) {
    case Exceeded::kCalls:
      return Exhausted(client, "one more waiting call of", "max_waiting_calls");
    case Exceeded::kCallsPerPeer:
      return Exhausted(client, "one more waiting call of",
                       "max_waiting_calls_per_client");
    case Exceeded::kBytes:
    case Exceeded::kBytesPerPeer:
      break;
  }
  return Exhausted(client,
                   absl::StrCat("a call waiting for ", keys.size(),
                                " keys, of ", bytes, " bytes, of"),
                   exceeded == Exceeded::kBytes
                       ? "max_waiting_bytes"
                       : "max_waiting_bytes_per_client");
}

}  // namespace hawser::store::internal
