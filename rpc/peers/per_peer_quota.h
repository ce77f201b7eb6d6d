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

// Counts resources of one kind, such as references, per peer for which they are
// held. Peers are identified by name, which a certificate can prove, so that
// restarting does not reset the quota. Uses no memory for peers without
// resources.
//
// Not thread-safe: the quota and its grants must be guarded by the lock of the
// owner of the resources.
class PerPeerQuota {
 public:
  // Accounts for one resource until destroyed. Must not outlive the quota. An
  // empty grant counts for no peer.
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
  //   what          name of the resources in errors: "references".
  //   option        name of the option that sets `max_per_peer`.
  PerPeerQuota(size_t max_per_peer, std::string_view what,
               std::string_view option)
      : max_per_peer_(max_per_peer), what_(what), option_(option) {}
  PerPeerQuota(const PerPeerQuota&) = delete;
  PerPeerQuota& operator=(const PerPeerQuota&) = delete;

  // Admits one more resource of `peer`. kResourceExhausted, naming the peer,
  // the limit and the option, if it has reached the limit.
  absl::StatusOr<Grant> Admit(const std::string& peer);

  // Number of resources held for `peer`.
  size_t held_for(const std::string& peer) const;
  // Number of peers with at least one resource.
  size_t num_peers() const { return counts_.size(); }

 private:
  const size_t max_per_peer_;
  const std::string what_;
  const std::string option_;
  // Only peers with at least one resource; grants point into it.
  absl::node_hash_map<std::string, size_t> counts_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_PER_PEER_QUOTA_H_
