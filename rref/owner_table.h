#ifndef HAWSER_RREF_OWNER_TABLE_H_
#define HAWSER_RREF_OWNER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rpc/peers/per_peer_quota.h"
#include "rref/ids.h"
#include "rref/owner_value.h"
#include "rref/reference_limits.h"
#include "rref/tombstones.h"

namespace hawser::rref {

// The values that other workers refer to, each with the forks that keep it.
//
// A value stays from its first fork to its last. An entry may be awaited: a
// fork, a fetch or a share came before the creation it depends on. It stays
// until that comes, or until all whose messages named it are lost. Forks are
// counted for their holder, and awaited entries for each worker whose messages
// named them; those of this worker itself are not. Thread-safe. Values
// are neither completed nor destroyed here but by whoever gets Actions.
class OwnerTable {
 public:
  struct Fork {
    RRefId rref;
    ForkId fork;
    rpc::WorkerRun holder;
  };

  // What is left to do when the lock is free: complete values that will never
  // be created, and let go of those that nothing keeps.
  struct Actions {
    std::vector<std::pair<std::shared_ptr<OwnerValue>, absl::Status>> failed;
    std::vector<std::shared_ptr<OwnerValue>> dropped;

    void Append(Actions other);
  };

  struct Counts {
    size_t owners = 0;
    // Of them, those whose creation has not arrived.
    size_t awaited = 0;
    size_t forks = 0;
    // Of them, those of other workers.
    size_t remote_forks = 0;
    // Remembered, so that nothing of theirs comes to life.
    size_t lost_workers = 0;
  };

  OwnerTable(rpc::WorkerRun self, size_t tombstone_capacity,
             const ReferenceLimits& limits);

  // Where a fork or an awaited entry would be one too many of a worker, these
  // give kResourceExhausted naming it, and nothing is added.

  // A creation by `holder` arrived: the value to complete with its result.
  //
  //   kAlreadyExists  it arrived before.
  //   kAborted        `holder` gave it up, or is lost.
  absl::StatusOr<std::shared_ptr<OwnerValue>> Create(
      RRefId rref, ForkId fork, const rpc::WorkerInfo& holder);

  // The owner gives a copy to `holder`; adds the entry if this is its first.
  //
  //   the error of OnWorkerLost, if `holder` is lost.
  absl::Status Share(RRefId rref, ForkId fork, const rpc::WorkerInfo& holder,
                     std::shared_ptr<OwnerValue> value);

  // A user asks that its copy be known. OK if it is already.
  //
  //   kNotFound  the value is gone.
  //   kAborted   `holder` is lost.
  absl::Status RequestFork(RRefId rref, ForkId fork,
                           const rpc::WorkerInfo& holder);

  // Ignored if unknown.
  Actions RemoveFork(RRefId rref, ForkId fork);

  // As RemoveFork; the creation that made `fork` is refused if it still
  // arrives, and a value awaited from it gets kAborted.
  Actions WithdrawCreation(RRefId rref, ForkId fork);

  // The value named by a reference that came here from `from`, awaited if its
  // creation has yet to arrive.
  //
  //   kNotFound  the value is gone.
  //   kAborted   it is awaited, and `from` is lost.
  absl::StatusOr<std::shared_ptr<OwnerValue>> Find(RRefId rref,
                                                   const rpc::WorkerInfo& from);

  // Forks given by Share, of which no other news came, since before the last
  // call of this function.
  std::vector<Fork> TakeStaleShares();

  // `fork` has reached its holder.
  void AcknowledgeShare(RRefId rref, ForkId fork);

  // Drops the forks that `lost` held, and what only it could have created or
  // only it awaited; its later messages are refused.
  Actions OnWorkerLost(rpc::WorkerRun lost, const absl::Status& error);

  // No creation arrives any more: what is awaited gets `error`, as does who
  // asks for it later.
  Actions StopAwaiting(const absl::Status& error);

  // Drops every value; awaited ones get `error`.
  Actions Close(const absl::Status& error);

  // Every fork that is left.
  std::vector<Fork> forks() const;
  Counts counts() const;

 private:
  struct ForkState {
    rpc::WorkerRun holder;
    // Given by Share, and not heard of since.
    bool unacknowledged = false;
    uint64_t generation = 0;
    rpc::PerPeerQuota::Grant grant = {};
  };
  struct Entry {
    std::shared_ptr<OwnerValue> value;
    bool arrived = false;
    // A holder was lost: copies that it sent may still arrive somewhere, which
    // nothing keeps the value for.
    bool lost_holder = false;
    // While it is awaited: those that named it, each with a grant unless one
    // of its forks has it.
    absl::flat_hash_map<rpc::WorkerRun, rpc::PerPeerQuota::Grant> awaiters;
    absl::flat_hash_map<ForkId, ForkState> forks;
  };
  using Entries = absl::flat_hash_map<RRefId, Entry>;

  absl::StatusOr<Entry*> FindOrAwaitLocked(RRefId rref,
                                           const rpc::WorkerInfo& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Empty for this worker itself.
  absl::StatusOr<rpc::PerPeerQuota::Grant> AdmitLocked(
      const rpc::WorkerInfo& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For a fork of `rref`; takes over that of an entry which `worker` awaits.
  absl::StatusOr<rpc::PerPeerQuota::Grant> AdmitForkLocked(
      RRefId rref, const rpc::WorkerInfo& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whose fork of an awaited entry is gone goes on awaiting it.
  static void KeepAwaiting(Entry& entry, ForkState& removed);
  // Its value has come, or never will.
  static void EndAwaiting(Entry& entry);
  // Takes the entry out if nothing keeps it.
  void EraseIfUnusedLocked(Entries::iterator it, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerRun self_;

  mutable async::Mutex mutex_;
  rpc::PerPeerQuota quota_ ABSL_GUARDED_BY(mutex_);
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  // Once nothing is awaited any more: why.
  absl::Status no_more_awaited_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<rpc::WorkerRun, absl::Status> lost_
      ABSL_GUARDED_BY(mutex_);
  Tombstones<RRefId> withdrawn_ ABSL_GUARDED_BY(mutex_);
  // Those that had lost a holder before they ended: they are not awaited again.
  Tombstones<RRefId> ended_after_loss_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_OWNER_TABLE_H_
