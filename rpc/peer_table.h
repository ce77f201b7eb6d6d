// The workers that an agent knows.

#ifndef HAWSER_RPC_PEER_TABLE_H_
#define HAWSER_RPC_PEER_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "async/mutex.h"
#include "rpc/call_options.h"
#include "rpc/peer.h"
#include "rpc/types.h"

namespace hawser::rpc {

// By name and by rank. Thread-safe.
class PeerTable {
 public:
  // Takes the place of an earlier incarnation of the same name.
  void Insert(std::shared_ptr<Peer> peer);

  // Null if it is not known; a WorkerInfo finds its own incarnation only.
  std::shared_ptr<Peer> Find(const Destination& destination) const;
  std::shared_ptr<Peer> FindByName(std::string_view name) const;

  // By rank.
  std::vector<std::shared_ptr<Peer>> All() const;

 private:
  mutable async::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Peer>> by_name_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<WorkerId, std::shared_ptr<Peer>> by_id_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEER_TABLE_H_
