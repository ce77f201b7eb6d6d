// Quota of what peers may use at once, for each peer and in total.

#ifndef HAWSER_NET_PER_PEER_QUOTA_H_
#define HAWSER_NET_PER_PEER_QUOTA_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// Counts items of one kind, such as calls or references, and their bytes, for
// each peer and in total. Peers are identified by name: one that a certificate
// can prove is not reset by a restart. Uses no memory for peers without items.
//
// Thread-safe.
class PerPeerQuota {
  struct Usage {
    size_t items = 0;
    size_t bytes = 0;
  };
  class State;

 public:
  static constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

  struct Limit {
    size_t max = kUnlimited;
    // Name of the option that sets it, for errors: "Options::max_calls".
    std::string option = {};
  };
  struct Options {
    // The peers, in the singular, and the items, in the plural, for errors:
    // "worker", "references".
    std::string peer = "worker";
    std::string items;
    // Advice in errors, besides raising the limit: "release some".
    std::string advice;

    Limit items_in_total = {};
    Limit items_per_peer = {};
    Limit bytes_in_total = {};
    Limit bytes_per_peer = {};
  };

  // Accounts for one item until destroyed. May outlive the quota. An empty
  // reservation counts for no peer. Not thread-safe.
  class [[nodiscard]] Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { Drop(); }

    bool empty() const { return state_ == nullptr; }

    // Changes the number of bytes. Errors of Admit; fewer bytes are always
    // admitted. Not for an empty reservation.
    absl::Status Resize(size_t bytes);
    // Releases the bytes while the item continues.
    void ReleaseBytes();

   private:
    friend class PerPeerQuota;
    void Drop();

    std::shared_ptr<State> state_;
    // The peer's entry in the state, which stays while the peer has items.
    std::pair<const std::string, Usage>* peer_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit PerPeerQuota(Options options);
  PerPeerQuota(const PerPeerQuota&) = delete;
  PerPeerQuota& operator=(const PerPeerQuota&) = delete;

  // Admits a further item of `peer`, with `bytes` bytes. kResourceExhausted,
  // naming the peer, the limit and its option, if it would exceed a limit; the
  // first in the order of the fields of Options. Nothing is counted then.
  absl::StatusOr<Reservation> Admit(const std::string& peer, size_t bytes = 0);

  // kResourceExhausted, as Admit, if `peer` cannot get a single byte more.
  absl::Status CheckRoom(const std::string& peer) const;

  // Bytes in total, a moment ago. Takes no lock.
  size_t num_bytes() const;
  // Number of items of `peer`.
  size_t num_items(const std::string& peer) const;
  // Number of peers with at least one item.
  size_t num_peers() const;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_PER_PEER_QUOTA_H_
