// The workers known to an agent, and those that it knows to be lost.

#ifndef HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_
#define HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
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

  // As SenderDirectory::Confirm, with the Peer, which it adds. Calls of one
  // name share a lookup. Up to kMaxLookups are in progress, each of which may
  // hold a thread while the store is slow; names wait for their turn.
  using Confirmed =
      absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<Peer>>) &&>;
  void Confirm(const WorkerInfo& worker, Confirmed done);

  static constexpr int kMaxLookups = 4;
  // Limits on the names that wait for a lookup, and on the calls of each.
  static constexpr size_t kMaxUnconfirmed = 1024;
  static constexpr size_t kMaxCallsPerUnconfirmed = 1024;

  // --- Losses.

  bool IsLost(Incarnation incarnation) const;
  size_t num_lost() const;
  // Whether the membership log says that it left or was lost.
  bool HasDeparted(Incarnation incarnation) const;
  void SetDeparted(Incarnation incarnation);

  // Outcome of marking a worker that departed: it was marked before; or it is
  // new, and services may hold state for it (kMet) or cannot (kUnmet). A worker
  // was met if it was a member at the same time as this worker, or was found in
  // the store, as are all that call.
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
  // Keeps `done` until its sender was looked up, unless too many wait.
  enum class Queueing { kBegins, kQueued, kFull };
  Queueing Enqueue(const WorkerInfo& worker, Confirmed& done);
  void BeginLookUpSender(const std::string& name);
  // Looks up a name, and then begins with the one that has waited longest.
  void LookUpSender(const std::string& name);
  // The Peer of a sender whose name has `record`.
  absl::StatusOr<std::shared_ptr<Peer>> AddSender(
      const WorkerInfo& sender,
      const absl::StatusOr<std::optional<WorkerInfo>>& record);
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
  struct UnconfirmedCall {
    WorkerInfo sender;
    Confirmed done;
  };
  // By name, with the calls for whose sender the next lookup decides. An entry
  // is here while its name is queued or looked up.
  absl::flat_hash_map<std::string, std::vector<UnconfirmedCall>> unconfirmed_
      ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> queued_names_ ABSL_GUARDED_BY(mutex_);
  int num_lookups_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_MEMBERS_PEER_DIRECTORY_H_
