// Table of the workers known to an agent.

#ifndef HAWSER_RPC_PEERS_PEER_TABLE_H_
#define HAWSER_RPC_PEERS_PEER_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "async/mutex.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Looks up workers by name and by rank. There is one Peer object per
// incarnation, shared by all sources of information about it. Thread-safe.
class PeerTable {
 public:
  // Assigns name and rank to `peer`, replacing a previous holder, or to the
  // existing Peer if its incarnation is known. Returns the Peer that holds
  // them.
  std::shared_ptr<Peer> Insert(std::shared_ptr<Peer> peer);

  // Same for a worker that joined according to membership events, which arrive
  // in order but with delay. It does not take a name or rank from a peer that
  // was inserted but not announced yet, since that peer joined later, unless
  // that peer is lost and so may never be announced.
  std::shared_ptr<Peer> Announce(std::shared_ptr<Peer> peer);

  // Returns null if unknown. A WorkerInfo finds only its own incarnation, even
  // if that has lost its name.
  std::shared_ptr<Peer> Find(const Destination& destination) const;
  std::shared_ptr<Peer> FindByName(std::string_view name) const;
  // Also finds a peer whose name is now held by another, unless it is lost.
  std::shared_ptr<Peer> FindByIncarnation(Incarnation incarnation) const;

  // Returns all peers, ordered by rank.
  std::vector<std::shared_ptr<Peer>> All() const;

 private:
  struct Known {
    std::shared_ptr<Peer> peer;
    bool announced = false;
  };

  std::shared_ptr<Peer> Add(std::shared_ptr<Peer> peer, bool announce);

  mutable async::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Peer>> by_name_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<WorkerId, std::shared_ptr<Peer>> by_id_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Incarnation, Known> by_incarnation_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_PEER_TABLE_H_
