// The workers that an agent knows.

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

// By name and by rank, and one object for each incarnation: what is learnt of a
// worker, by whatever way, is learnt of that. Thread-safe.
class PeerTable {
 public:
  // Gives name and rank to `peer`, which may have been another's, or, if its
  // incarnation is known, to the one known. Returns the one that has them.
  std::shared_ptr<Peer> Insert(std::shared_ptr<Peer> peer);

  // The same for one that joined, by the events of the membership, which come
  // in order but late: it does not take a name or rank from one that was
  // inserted and is not announced yet, for that joined after it, unless that
  // is lost, and so may never be announced.
  std::shared_ptr<Peer> Announce(std::shared_ptr<Peer> peer);

  // Null if it is not known; a WorkerInfo finds its own incarnation only, also
  // without a name.
  std::shared_ptr<Peer> Find(const Destination& destination) const;
  std::shared_ptr<Peer> FindByName(std::string_view name) const;
  // Also one whose name another has now, unless it is lost.
  std::shared_ptr<Peer> FindByIncarnation(Incarnation incarnation) const;

  // By rank.
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
