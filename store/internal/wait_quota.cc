#include "store/internal/wait_quota.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hawser::store::internal {
namespace {

// The request's and the table's; rounded up from what strings and the
// containers around them take.
constexpr size_t kCopies = 2;
constexpr size_t kKeyBytes = 64;

size_t BytesOf(std::span<const std::string> keys) {
  size_t bytes = 0;
  for (const std::string& key : keys) bytes += kKeyBytes + key.size();
  return kCopies * bytes;
}

absl::Status Exhausted(const std::string& client, absl::string_view what,
                       absl::string_view limit) {
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " ", client, " exceeds StoreServerLimits::", limit,
      "; wait for several keys in one call, or for fewer, or raise it"));
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

WaitQuota::Ticket::Ticket(Ticket&& other) noexcept
    : quota_(std::move(other.quota_)),
      client_(std::move(other.client_)),
      bytes_(other.bytes_) {}

WaitQuota::Ticket::~Ticket() {
  if (quota_ != nullptr) quota_->Release(client_, bytes_);
}

std::shared_ptr<WaitQuota> WaitQuota::Create(const StoreServerLimits& limits) {
  return std::shared_ptr<WaitQuota>(new WaitQuota(limits));
}

absl::StatusOr<WaitQuota::Ticket> WaitQuota::Admit(
    const std::string& client, std::span<const std::string> keys) {
  const size_t bytes = BytesOf(keys);
  {
    async::MutexLock lock(&mutex_);
    const auto it = clients_.find(client);
    const Usage usage = it == clients_.end() ? Usage() : it->second;
    if (all_.num_calls >= limits_.max_waiting_calls) {
      return Exhausted(client, "one more call that waits, of",
                       "max_waiting_calls");
    }
    if (usage.num_calls >= limits_.max_waiting_calls_per_client) {
      return Exhausted(client, "one more call that waits of",
                       "max_waiting_calls_per_client");
    }
    // No difference wraps: what there is lies within the limit.
    if (bytes > limits_.max_waiting_bytes - all_.bytes) {
      return Exhausted(client,
                       absl::StrCat("a call that waits for ", keys.size(),
                                    " keys, of ", bytes, " bytes, of"),
                       "max_waiting_bytes");
    }
    if (bytes > limits_.max_waiting_bytes_per_client - usage.bytes) {
      return Exhausted(client,
                       absl::StrCat("a call that waits for ", keys.size(),
                                    " keys, of ", bytes, " bytes, of"),
                       "max_waiting_bytes_per_client");
    }
    ++all_.num_calls;
    all_.bytes += bytes;
    Usage& now = it == clients_.end() ? clients_[client] : it->second;
    ++now.num_calls;
    now.bytes += bytes;
  }
  Ticket ticket;
  ticket.quota_ = shared_from_this();
  ticket.client_ = client;
  ticket.bytes_ = bytes;
  return ticket;
}

void WaitQuota::Release(const std::string& client, size_t bytes) {
  async::MutexLock lock(&mutex_);
  --all_.num_calls;
  all_.bytes -= bytes;
  const auto it = clients_.find(client);
  it->second.bytes -= bytes;
  if (--it->second.num_calls == 0) clients_.erase(it);
}

}  // namespace hawser::store::internal
