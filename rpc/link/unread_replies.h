// Memory of the replies that a peer has not read yet.

#ifndef HAWSER_RPC_LINK_UNREAD_REPLIES_H_
#define HAWSER_RPC_LINK_UNREAD_REPLIES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "net/per_peer_quota.h"

namespace hawser::rpc {

// Returns a quota for the replies of a server: `bytes` in total, and for each
// peer half of that, but at least the longest message if that is less than
// `bytes`.
std::shared_ptr<net::PerPeerQuota> MakeReplyQuota(size_t bytes,
                                                  size_t max_message_bytes);

// The share of one link in its server's quota, in steps of 1 MiB. Without a
// quota everything is admitted.
//
// Not thread-safe, except CheckRoom.
class UnreadReplies {
 public:
  UnreadReplies() = default;
  UnreadReplies(std::shared_ptr<net::PerPeerQuota> quota, std::string peer);

  // kResourceExhausted if the peer should read replies before it makes calls.
  absl::Status CheckRoom() const;

  // Counts a reply. kResourceExhausted, naming the peer and the limit, if it
  // exceeds one; nothing is counted then.
  absl::Status Add(size_t bytes);
  // The peer has read that much, or does not need it. Of more than was added,
  // the excess has no effect.
  void Remove(size_t bytes);
  void Clear() { Remove(bytes_); }

 private:
  std::shared_ptr<net::PerPeerQuota> quota_;
  std::string peer_;
  size_t bytes_ = 0;
  size_t reserved_ = 0;
  net::PerPeerQuota::Reservation reservation_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_UNREAD_REPLIES_H_
