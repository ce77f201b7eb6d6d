// The workers known to an agent, and those that it knows to be lost.

#ifndef HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_
#define HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/peers/peer.h"
#include "rpc/peers/peer_table.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Finds peers in memory, or else in the store's WorkerDirectory, and marks them
// as lost or left. Has no opinion on liveness: PeerMembership decides which
// peers are lost. Thread-safe.
class PeerDirectory {
 public:
  // `records` and `transport` must outlive this object.
  PeerDirectory(std::shared_ptr<AgentState> state, WorkerDirectory* records,
                Transport* transport);
  PeerDirectory(const PeerDirectory&) = delete;
  PeerDirectory& operator=(const PeerDirectory&) = delete;

  // --- Peers.

  // Returns a Peer that is not in the table.
  std::shared_ptr<Peer> MakePeer(const WorkerInfo& worker) const;
  // Adds `worker`, unless it is known, and returns its Peer.
  std::shared_ptr<Peer> Add(const WorkerInfo& worker);
  // Adds a worker that joined according to the membership log, unless it is
  // lost.
  void Announce(const WorkerInfo& worker);

  std::shared_ptr<Peer> FindByIncarnation(Incarnation incarnation) const {
    return table_.FindByIncarnation(incarnation);
  }
  // All peers, ordered by rank.
  std::vector<std::shared_ptr<Peer>> All() const { return table_.All(); }

  // As PeerFinder::FindPeer. If the store is not reachable, it is not asked
  // whether a lost worker was restarted.
  absl::StatusOr<std::shared_ptr<Peer>> Find(const Destination& to,
                                             async::MonotonicTime deadline,
                                             bool store_reachable);

  // --- Senders that are not known.

  // Looks `worker` up on the control executor and runs `found` with its Peer if
  // it is a member. Does nothing if it was looked up within the last 5 s, or if
  // 4 lookups are in progress, each of which may hold a thread while the store
  // is slow.
  void LearnAbout(const WorkerInfo& worker,
                  std::function<void(const std::shared_ptr<Peer>&)> found);

  // --- Losses.

  bool IsLost(Incarnation incarnation) const;
  size_t num_lost() const;
  // Whether the membership log says that it left or was lost.
  bool HasDeparted(Incarnation incarnation) const;
  void SetDeparted(Incarnation incarnation);

  // Outcome of marking a worker that departed: it was marked before; or it is
  // new, and services may hold state for it (kMet) or cannot (kUnmet). A worker
  // was met if it was a member at the same time as this worker, was found in
  // the store, or called this worker.
  enum class Marking { kMarkedBefore, kUnmet, kMet };
  // Marks a peer as left or as lost, with `status` for later calls to it; see
  // Peer::MarkLeft and Peer::MarkLost.
  Marking MarkLeft(const std::shared_ptr<Peer>& peer,
                   const absl::Status& status);
  Marking MarkLost(const std::shared_ptr<Peer>& peer,
                   const absl::Status& status);

 private:
  absl::StatusOr<std::shared_ptr<Peer>> LookUp(
      const Destination& to, const std::shared_ptr<Peer>& known,
      absl::Duration limit);
  absl::StatusOr<std::optional<WorkerInfo>> ReadRecord(const Destination& to,
                                                       absl::Duration limit);
  bool BeginLookup(const WorkerInfo& worker);
  // Inserts it into lost_.
  Marking Mark(Incarnation incarnation);

  const std::shared_ptr<AgentState> state_;
  WorkerDirectory* const records_;
  Transport* const transport_;
  PeerTable table_;

  mutable async::Mutex mutex_;
  // Workers that this worker treats as lost, including those that left.
  absl::flat_hash_set<Incarnation> lost_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Incarnation> departed_ ABSL_GUARDED_BY(mutex_);
  // Senders that were looked up, with the time of the lookup.
  absl::flat_hash_map<Incarnation, async::MonotonicTime> non_members_
      ABSL_GUARDED_BY(mutex_);
  int num_lookups_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_
