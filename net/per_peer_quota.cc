#include "net/per_peer_quota.h"

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"

namespace hawser::net {

class PerPeerQuota::State {
 public:
  using Peer = std::pair<const std::string, Usage>;

  explicit State(Options options) : options_(std::move(options)) {}

  absl::StatusOr<Peer*> Add(const std::string& peer, size_t bytes) {
    async::MutexLock lock(&mutex_);
    const auto it = peers_.find(peer);
    RETURN_IF_ERROR(
        CheckLocked(peer, it == peers_.end() ? Usage() : it->second, bytes));
    Peer& entry = it == peers_.end() ? *peers_.try_emplace(peer).first : *it;
    for (Usage* usage : {&all_, &entry.second}) {
      ++usage->items;
      usage->bytes += bytes;
    }
    PublishLocked();
    return &entry;
  }

  void ReleaseBytes(Peer& peer, size_t bytes) {
    async::MutexLock lock(&mutex_);
    all_.bytes -= bytes;
    peer.second.bytes -= bytes;
    PublishLocked();
  }

  absl::Status AddBytes(Peer& peer, size_t bytes) {
    async::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckBytesLocked(peer.first, peer.second, bytes));
    all_.bytes += bytes;
    peer.second.bytes += bytes;
    PublishLocked();
    return absl::OkStatus();
  }

  absl::Status CheckRoom(const std::string& peer) const {
    async::MutexLock lock(&mutex_);
    const auto it = peers_.find(peer);
    return CheckBytesLocked(peer, it == peers_.end() ? Usage() : it->second, 1);
  }

  void Remove(Peer& peer, size_t bytes) {
    async::MutexLock lock(&mutex_);
    for (Usage* usage : {&all_, &peer.second}) {
      --usage->items;
      usage->bytes -= bytes;
    }
    PublishLocked();
    if (peer.second.items == 0) peers_.erase(peers_.find(peer.first));
  }

  size_t num_bytes() const { return bytes_.load(std::memory_order_relaxed); }

  size_t num_items(const std::string& peer) const {
    async::MutexLock lock(&mutex_);
    const auto it = peers_.find(peer);
    return it == peers_.end() ? 0 : it->second.items;
  }

  size_t num_peers() const {
    async::MutexLock lock(&mutex_);
    return peers_.size();
  }

 private:
  void PublishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bytes_.store(all_.bytes, std::memory_order_relaxed);
  }

  absl::Status CheckLocked(const std::string& peer, const Usage& usage,
                           size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (all_.items >= options_.items_in_total.max) {
      return TooMany(options_.items_in_total, Refused(peer), all_);
    }
    if (usage.items >= options_.items_per_peer.max) {
      return TooMany(options_.items_per_peer, Has(peer), usage);
    }
    return CheckBytesLocked(peer, usage, bytes);
  }

  absl::Status CheckBytesLocked(const std::string& peer, const Usage& usage,
                                size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (Exceeds(bytes, all_, options_.bytes_in_total)) {
      return TooLarge(options_.bytes_in_total, Refused(peer), all_, bytes);
    }
    if (Exceeds(bytes, usage, options_.bytes_per_peer)) {
      return TooLarge(options_.bytes_per_peer, Has(peer), usage, bytes);
    }
    return absl::OkStatus();
  }

  static bool Exceeds(size_t bytes, const Usage& usage, const Limit& limit) {
    // The difference cannot wrap, since current usage is within the limit.
    return limit.max != kUnlimited && bytes > limit.max - usage.bytes;
  }

  std::string Has(const std::string& peer) const {
    return absl::StrCat(options_.peer, " '", peer, "' has ");
  }
  std::string Refused(const std::string& peer) const {
    return absl::StrCat(options_.peer, " '", peer, "' is refused: all ",
                        options_.peer, "s together have ");
  }
  absl::Status TooMany(const Limit& limit, const std::string& subject,
                       const Usage& usage) const {
    return Exhausted(limit, absl::StrCat(subject, usage.items, " ",
                                         options_.items, " here"));
  }
  absl::Status TooLarge(const Limit& limit, const std::string& subject,
                        const Usage& usage, size_t bytes) const {
    return Exhausted(limit,
                     absl::StrCat(subject, options_.items, " of ", usage.bytes,
                                  " bytes here, and ", bytes,
                                  " bytes more would exceed ", limit.max));
  }
  absl::Status Exhausted(const Limit& limit, const std::string& text) const {
    return absl::ResourceExhaustedError(
        absl::StrCat(text, ", the limit set by ", limit.option, ": ",
                     options_.advice, " or raise the limit"));
  }

  const Options options_;

  mutable async::Mutex mutex_;
  Usage all_ ABSL_GUARDED_BY(mutex_);
  // Those of `all_`.
  std::atomic<size_t> bytes_{0};
  // Only peers with items; reservations point into it.
  absl::node_hash_map<std::string, Usage> peers_ ABSL_GUARDED_BY(mutex_);
};

PerPeerQuota::Reservation& PerPeerQuota::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  state_ = std::move(other.state_);
  peer_ = std::exchange(other.peer_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status PerPeerQuota::Reservation::Resize(size_t bytes) {
  if (bytes > bytes_) {
    RETURN_IF_ERROR(state_->AddBytes(*peer_, bytes - bytes_));
  } else {
    state_->ReleaseBytes(*peer_, bytes_ - bytes);
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

void PerPeerQuota::Reservation::ReleaseBytes() {
  if (bytes_ > 0) state_->ReleaseBytes(*peer_, std::exchange(bytes_, 0));
}

void PerPeerQuota::Reservation::Drop() {
  if (state_ == nullptr) return;
  std::exchange(state_, nullptr)->Remove(*peer_, bytes_);
}

PerPeerQuota::PerPeerQuota(Options options)
    : state_(std::make_shared<State>(std::move(options))) {}

absl::StatusOr<PerPeerQuota::Reservation> PerPeerQuota::Admit(
    const std::string& peer, size_t bytes) {
  ASSIGN_OR_RETURN(State::Peer * entry, state_->Add(peer, bytes));
  Reservation reservation;
  reservation.state_ = state_;
  reservation.peer_ = entry;
  reservation.bytes_ = bytes;
  return reservation;
}

absl::Status PerPeerQuota::CheckRoom(const std::string& peer) const {
  return state_->CheckRoom(peer);
}

size_t PerPeerQuota::num_bytes() const { return state_->num_bytes(); }

size_t PerPeerQuota::num_items(const std::string& peer) const {
  return state_->num_items(peer);
}

size_t PerPeerQuota::num_peers() const { return state_->num_peers(); }

}  // namespace hawser::net
