#include "store/grpc/wait_quota.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hawser::store::internal {
namespace {

constexpr char kOptions[] = "StoreServerLimits::";

// One copy in the request and one in the table. The overhead is rounded up from
// that of strings and their containers.
constexpr size_t kCopies = 2;
constexpr size_t kKeyBytes = 64;

// The limits of options that may not have been validated.
net::PerPeerQuota::Limit LimitOf(size_t max, absl::string_view option) {
  return {.max = max, .option = absl::StrCat(kOptions, option)};
}
net::PerPeerQuota::Limit LimitOf(int max, absl::string_view option) {
  return LimitOf(static_cast<size_t>(std::max(max, 0)), option);
}

}  // namespace

absl::Status Validate(const StoreServerLimits& limits) {
  const auto check = [](bool valid, absl::string_view name) {
    return valid ? absl::OkStatus()
                 : absl::InvalidArgumentError(
                       absl::StrCat(kOptions, name, " must be positive"));
  };
  absl::Status status =
      check(limits.max_keys_per_call > 0, "max_keys_per_call");
  status.Update(check(limits.max_waiting_calls > 0, "max_waiting_calls"));
  status.Update(check(limits.max_waiting_calls_per_client > 0,
                      "max_waiting_calls_per_client"));
  status.Update(check(limits.max_waiting_bytes > 0, "max_waiting_bytes"));
  status.Update(check(limits.max_waiting_bytes_per_client > 0,
                      "max_waiting_bytes_per_client"));
  status.Update(check(limits.max_reply_bytes > 0, "max_reply_bytes"));
  status.Update(check(limits.max_reply_bytes_per_client > 0,
                      "max_reply_bytes_per_client"));
  status.Update(check(limits.max_stored_bytes_per_client > 0,
                      "max_stored_bytes_per_client"));
  status.Update(check(limits.memory_quota_bytes > 0, "memory_quota_bytes"));
  return status;
}

WaitQuota::WaitQuota(const StoreServerLimits& limits)
    : quota_(
          {.peer = "client",
           .items = "waiting calls",
           .advice = "wait for several keys in one call, wait for fewer keys,",
           .items_in_total =
               LimitOf(limits.max_waiting_calls, "max_waiting_calls"),
           .items_per_peer = LimitOf(limits.max_waiting_calls_per_client,
                                     "max_waiting_calls_per_client"),
           .bytes_in_total =
               LimitOf(limits.max_waiting_bytes, "max_waiting_bytes"),
           .bytes_per_peer = LimitOf(limits.max_waiting_bytes_per_client,
                                     "max_waiting_bytes_per_client")}) {}

absl::StatusOr<WaitQuota::Reservation> WaitQuota::Admit(
    const std::string& client, int num_keys, size_t bytes) {
  absl::StatusOr<Reservation> reservation = quota_.Admit(
      client, kCopies * (bytes + kKeyBytes * static_cast<size_t>(num_keys)));
  if (reservation.ok()) return reservation;
  return absl::Status(reservation.status().code(),
                      absl::StrCat("a call that waits for ", num_keys,
                                   " keys: ", reservation.status().message()));
}

}  // namespace hawser::store::internal
