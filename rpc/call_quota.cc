#include "rpc/call_quota.h"

#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

absl::Status NotPositive(absl::string_view limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("AgentOptions::limits.", limit, " must be positive"));
}

absl::Status Exhausted(const std::string& peer, absl::string_view what,
                       absl::string_view limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " worker '", peer, "' exceeds AgentOptions::limits.",
                   limit, "; call less at once, or raise it"));
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

CallQuota::Ticket& CallQuota::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  quota_ = std::move(other.quota_);
  peer_ = std::move(other.peer_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void CallQuota::Ticket::ReleaseBytes() {
  if (quota_ == nullptr || bytes_ == 0) return;
  quota_->Release(peer_, 0, std::exchange(bytes_, 0));
}

void CallQuota::Ticket::Drop() {
  if (quota_ == nullptr) return;
  std::exchange(quota_, nullptr)->Release(peer_, 1, bytes_);
}

std::shared_ptr<CallQuota> CallQuota::Create(const CallLimits& limits) {
  return std::shared_ptr<CallQuota>(new CallQuota(limits));
}

absl::StatusOr<CallQuota::Ticket> CallQuota::Admit(const std::string& peer,
                                                   size_t request_bytes) {
  {
    async::MutexLock lock(&mutex_);
    auto it = peers_.find(peer);
    const Usage usage = it == peers_.end() ? Usage() : it->second;
    if (num_calls_ >= limits_.max_calls) {
      return Exhausted(peer, "one more call, of", "max_calls");
    }
    if (usage.num_calls >= limits_.max_calls_per_peer) {
      return Exhausted(peer, "one more call of", "max_calls_per_peer");
    }
    // Neither wraps: the sum is within the limit, and the rest is compared.
    if (request_bytes > limits_.max_request_bytes_per_peer - usage.bytes) {
      return Exhausted(
          peer, absl::StrCat("a request of ", request_bytes, " bytes of"),
          "max_request_bytes_per_peer");
    }
    ++num_calls_;
    Usage& now = it == peers_.end() ? peers_[peer] : it->second;
    ++now.num_calls;
    now.bytes += request_bytes;
  }
  Ticket ticket;
  ticket.quota_ = shared_from_this();
  ticket.peer_ = peer;
  ticket.bytes_ = request_bytes;
  return ticket;
}

void CallQuota::Release(const std::string& peer, int num_calls, size_t bytes) {
  async::MutexLock lock(&mutex_);
  num_calls_ -= num_calls;
  auto it = peers_.find(peer);
  it->second.num_calls -= num_calls;
  it->second.bytes -= bytes;
  if (it->second.num_calls == 0) peers_.erase(it);
}

}  // namespace hawser::rpc
