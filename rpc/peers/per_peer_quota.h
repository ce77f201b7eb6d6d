// Per-peer limit on resources that outlive a call.

#ifndef HAWSER_RPC_PEERS_PER_PEER_QUOTA_H_
#define HAWSER_RPC_PEERS_PER_PEER_QUOTA_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"

namespace hawser::rpc {

// Counts things of one kind, such as references, by the peer for which they are
// held. By its name, which a certificate proves, so that a peer does not gain
// by restarting. Costs nothing for peers that hold nothing.
//
// Not thread-safe: guarded, with its grants, by the lock of what holds the
// things.
class PerPeerQuota {
 public:
  // One thing that is held, until it is dropped. Not to outlive the quota. An
  // empty one counts for nobody.
  class Grant {
   public:
    Grant() = default;
    Grant(Grant&& other) noexcept { *this = std::move(other); }
    Grant& operator=(Grant&& other) noexcept;
    ~Grant() { Drop(); }

    bool empty() const { return quota_ == nullptr; }

   private:
    friend class PerPeerQuota;
    void Drop();

    PerPeerQuota* quota_ = nullptr;
    std::pair<const std::string, size_t>* count_ = nullptr;
  };

  //   max_per_peer  positive.
  //   what          the things, for errors: "references".
  //   option        what sets `max_per_peer`.
  PerPeerQuota(size_t max_per_peer, std::string_view what,
               std::string_view option)
      : max_per_peer_(max_per_peer), what_(what), option_(option) {}
  PerPeerQuota(const PerPeerQuota&) = delete;
  PerPeerQuota& operator=(const PerPeerQuota&) = delete;

  // kResourceExhausted, naming the peer, the limit and the option, if `peer`
  // has as many already.
  absl::StatusOr<Grant> Admit(const std::string& peer);

  // How many are held for `peer`.
  size_t held_for(const std::string& peer) const;
  // Peers for which something is held.
  size_t num_peers() const { return counts_.size(); }

 private:
  const size_t max_per_peer_;
  const std::string what_;
  const std::string option_;
  // Only of peers that hold something; grants point into it.
  absl::node_hash_map<std::string, size_t> counts_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_PER_PEER_QUOTA_H_
