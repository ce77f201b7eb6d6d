#include "net/server/shared_quota.h"

namespace hawser::net {

SharedQuota::Reservation& SharedQuota::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  quota_ = std::move(other.quota_);
  peer_ = std::move(other.peer_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void SharedQuota::Reservation::ReleaseBytes() {
  if (quota_ == nullptr || bytes_ == 0) return;
  quota_->Release(peer_, 0, std::exchange(bytes_, 0));
}

void SharedQuota::Reservation::Drop() {
  if (quota_ == nullptr) return;
  std::exchange(quota_, nullptr)->Release(peer_, 1, bytes_);
}

std::shared_ptr<SharedQuota> SharedQuota::Create(const Limits& limits) {
  return std::shared_ptr<SharedQuota>(new SharedQuota(limits));
}

std::variant<SharedQuota::Reservation, SharedQuota::Exceeded>
SharedQuota::Admit(const std::string& peer, size_t bytes) {
  {
    async::MutexLock lock(&mutex_);
    const auto it = peers_.find(peer);
    const Usage usage = it == peers_.end() ? Usage() : it->second;
    if (all_.num_calls >= limits_.max_calls) return Exceeded::kCalls;
    if (usage.num_calls >= limits_.max_calls_per_peer) {
      return Exceeded::kCallsPerPeer;
    }
    // The difference cannot wrap, since the current total is within the limit.
    if (bytes > limits_.max_bytes - all_.bytes) return Exceeded::kBytes;
    if (bytes > limits_.max_bytes_per_peer - usage.bytes) {
      return Exceeded::kBytesPerPeer;
    }
    Usage& of_peer = it == peers_.end() ? peers_[peer] : it->second;
    for (Usage* counted : {&all_, &of_peer}) {
      ++counted->num_calls;
      counted->bytes += bytes;
    }
  }
  Reservation reservation;
  reservation.quota_ = shared_from_this();
  reservation.peer_ = peer;
  reservation.bytes_ = bytes;
  return reservation;
}

void SharedQuota::Release(const std::string& peer, int num_calls,
                          size_t bytes) {
  async::MutexLock lock(&mutex_);
  const auto it = peers_.find(peer);
  for (Usage* counted : {&all_, &it->second}) {
    counted->num_calls -= num_calls;
    counted->bytes -= bytes;
  }
  if (it->second.num_calls == 0) peers_.erase(it);
}

}  // namespace hawser::net
