#include "rpc/peers/holding_quota.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::rpc {

HoldingQuota::Ticket& HoldingQuota::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  quota_ = std::exchange(other.quota_, nullptr);
  count_ = std::exchange(other.count_, nullptr);
  return *this;
}

void HoldingQuota::Ticket::Drop() {
  if (quota_ == nullptr) return;
  HoldingQuota& quota = *std::exchange(quota_, nullptr);
  if (--count_->second == 0) {
    quota.counts_.erase(quota.counts_.find(count_->first));
  }
}

absl::StatusOr<HoldingQuota::Ticket> HoldingQuota::Admit(
    const std::string& peer) {
  auto it = counts_.try_emplace(peer, 0).first;
  if (it->second >= max_per_peer_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker '", peer, "' has ", it->second, " ", what_, " here, all that ",
        option_, " allows one worker: let go of some, or raise it"));
  }
  ++it->second;
  Ticket ticket;
  ticket.quota_ = this;
  ticket.count_ = &*it;
  return ticket;
}

size_t HoldingQuota::held_for(const std::string& peer) const {
  auto it = counts_.find(peer);
  return it == counts_.end() ? 0 : it->second;
}

}  // namespace hawser::rpc
