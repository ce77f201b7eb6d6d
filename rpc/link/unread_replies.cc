#include "rpc/link/unread_replies.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "async/status_macros.h"

namespace hawser::rpc {
namespace {

constexpr size_t kStep = size_t{1} << 20;

}  // namespace

std::shared_ptr<net::PerPeerQuota> MakeReplyQuota(size_t bytes,
                                                  size_t max_message_bytes) {
  const std::string option = "GrpcLimits::memory_quota_bytes";
  return std::make_shared<net::PerPeerQuota>(net::PerPeerQuota::Options{
      .items = "unread replies",
      .advice = "make fewer calls at a time, read their replies,",
      .bytes_in_total = {.max = bytes, .option = option},
      .bytes_per_peer = {
          .max = std::min(bytes, std::max(bytes / 2, max_message_bytes)),
          .option = option + " / 2"}});
}

UnreadReplies::UnreadReplies(std::shared_ptr<net::PerPeerQuota> quota,
                             std::string peer)
    : quota_(std::move(quota)), peer_(std::move(peer)) {}

absl::Status UnreadReplies::CheckRoom() const {
  if (quota_ == nullptr || quota_->num_bytes() == 0) return absl::OkStatus();
  return quota_->CheckRoom(peer_);
}

absl::Status UnreadReplies::Add(size_t bytes) {
  if (quota_ == nullptr) return absl::OkStatus();
  if (bytes_ + bytes > reserved_) {
    const size_t needed = (bytes_ + bytes + kStep - 1) / kStep * kStep;
    if (reservation_.empty()) {
      ASSIGN_OR_RETURN(reservation_, quota_->Admit(peer_, needed));
    } else {
      RETURN_IF_ERROR(reservation_.Resize(needed));
    }
    reserved_ = needed;
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

void UnreadReplies::Remove(size_t bytes) {
  if (quota_ == nullptr) return;
  bytes_ -= std::min(bytes, bytes_);
  if (bytes_ == 0) {
    reservation_ = net::PerPeerQuota::Reservation();
    reserved_ = 0;
  } else if (reserved_ - bytes_ >= kStep) {
    reserved_ = (bytes_ + kStep - 1) / kStep * kStep;
    (void)reservation_.Resize(reserved_);
  }
}

}  // namespace hawser::rpc
