#include "rpc/peers/per_peer_quota.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::rpc {

PerPeerQuota::Grant& PerPeerQuota::Grant::operator=(Grant&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  quota_ = std::exchange(other.quota_, nullptr);
  count_ = std::exchange(other.count_, nullptr);
  return *this;
}

void PerPeerQuota::Grant::Drop() {
  if (quota_ == nullptr) return;
  PerPeerQuota& quota = *std::exchange(quota_, nullptr);
  if (--count_->second == 0) {
    quota.counts_.erase(quota.counts_.find(count_->first));
  }
}

absl::StatusOr<PerPeerQuota::Grant> PerPeerQuota::Admit(
    const std::string& peer) {
  auto it = counts_.try_emplace(peer, 0).first;
  if (it->second >= max_per_peer_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker '", peer, "' has ", it->second, " ", what_,
                     " here, the limit set by ", option_,
                     " per worker: release some or raise the limit"));
  }
  ++it->second;
  Grant grant;
  grant.quota_ = this;
  grant.count_ = &*it;
  return grant;
}

size_t PerPeerQuota::held_for(const std::string& peer) const {
  auto it = counts_.find(peer);
  return it == counts_.end() ? 0 : it->second;
}

}  // namespace hawser::rpc
