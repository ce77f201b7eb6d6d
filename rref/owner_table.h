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
#include "net/per_peer_quota.h"
#include "net/recent_keys.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rref/ids.h"
#include "rref/owner_value.h"
#include "rref/reference_limits.h"

namespace hawser::rref {

// Table of the values of this worker that other workers refer to, each with the
// forks that keep it.
//
// A value is kept from its first fork to its last. An entry is awaited if a
// fork, a fetch or a share arrived before the creation on which it depends. It
// is kept until the creation arrives or all workers whose messages named it are
// lost. The quota counts forks for their holder, and awaited entries for each
// worker whose messages named them; it does not count those of this worker
// itself.
//
// The table neither completes nor destroys values: the caller does so with the
// Actions that it gets. Thread-safe.
class OwnerTable {
 public:
  struct Fork {
    RRefId rref;
    ForkId fork;
    rpc::WorkerRun holder;
  };

  // Work to do after the lock is released: values that will never be created,
  // to complete with an error, and values without forks, to destroy.
  struct Actions {
    std::vector<std::pair<std::shared_ptr<OwnerValue>, absl::Status>> failed;
    std::vector<std::shared_ptr<OwnerValue>> dropped;

    void Append(Actions other);
  };

  struct Counts {
    size_t owners = 0;
    // Owners whose creation has not arrived.
    size_t awaited = 0;
    size_t forks = 0;
    // Forks on other workers.
    size_t remote_forks = 0;
    // Lost workers, remembered so that their late messages are refused.
    size_t lost_workers = 0;
  };

  OwnerTable(rpc::WorkerRun self, size_t tombstone_capacity,
             const ReferenceLimits& limits);

  // Create, Share, RequestFork and Find return kResourceExhausted, naming the
  // worker, and add nothing if a fork or an awaited entry would exceed the
  // quota of the worker.

  // A creation by `holder` arrived. Returns the value to complete with its
  // result.
  //
  //   kAlreadyExists  it arrived before.
  //   kAborted        `holder` withdrew it or is lost.
  absl::StatusOr<std::shared_ptr<OwnerValue>> Create(
      RRefId rref, ForkId fork, const rpc::WorkerInfo& holder);

  // The owner sends a copy to `holder`. Adds the entry if this is its first
  // fork.
  //
  //   the error of OnWorkerLost if `holder` is lost.
  absl::Status Share(RRefId rref, ForkId fork, const rpc::WorkerInfo& holder,
                     std::shared_ptr<OwnerValue> value);

  // A user requests that its copy be registered. OK if it already is.
  //
  //   kNotFound  the value no longer exists.
  //   kAborted   `holder` is lost.
  absl::Status RequestFork(RRefId rref, ForkId fork,
                           const rpc::WorkerInfo& holder);

  // Ignores a fork that `holder` does not have.
  Actions RemoveFork(RRefId rref, ForkId fork, rpc::WorkerRun holder);

  // Like RemoveFork, for the creator of `rref`. Also refuses the creation of
  // `fork` if it still arrives, and fails a value awaited from it with
  // kAborted.
  Actions WithdrawCreation(RRefId rref, ForkId fork);

  // Returns the value of a reference that `from` sent here; awaits it if its
  // creation has not arrived yet.
  //
  //   kNotFound  the value no longer exists.
  //   kAborted   it is awaited, and `from` is lost.
  absl::StatusOr<std::shared_ptr<OwnerValue>> Find(RRefId rref,
                                                   const rpc::WorkerInfo& from);

  // Returns the forks of Share that are older than the last call of this
  // function and not acknowledged yet.
  std::vector<Fork> TakeStaleShares();

  // `fork` has reached `holder`.
  void AcknowledgeShare(RRefId rref, ForkId fork, rpc::WorkerRun holder);

  // Drops the forks of `lost`, and fails the values that only it could have
  // created or that only it awaited. Its later messages are refused.
  Actions OnWorkerLost(rpc::WorkerRun lost, const absl::Status& error);

  // Creations do not arrive any more: fails the awaited values, and later
  // requests for such values, with `error`.
  Actions StopAwaiting(const absl::Status& error);

  // Drops all values and fails the awaited ones with `error`.
  Actions Close(const absl::Status& error);

  // All remaining forks.
  std::vector<Fork> forks() const;
  Counts counts() const;

 private:
  // A worker names its own forks only, by ids that others may have drawn.
  struct HeldFork {
    ForkId fork;
    rpc::WorkerRun holder;

    friend bool operator==(const HeldFork&, const HeldFork&) = default;

    template <class H>
    friend H AbslHashValue(H h, const HeldFork& held) {
      return H::combine(std::move(h), held.fork, held.holder);
    }
  };
  struct ForkState {
    // Added by Share and not acknowledged yet.
    bool unacknowledged = false;
    uint64_t generation = 0;
    net::PerPeerQuota::Reservation reservation = {};
  };
  struct Entry {
    std::shared_ptr<OwnerValue> value;
    bool arrived = false;
    // Its creation arrived.
    bool created = false;
    // A holder was lost. Copies that it sent may still arrive at other workers,
    // but they do not keep the value.
    bool lost_holder = false;
    // While the entry is awaited: the workers that named it, each with a
    // reservation unless one of its forks holds it.
    absl::flat_hash_map<rpc::WorkerRun, net::PerPeerQuota::Reservation>
        awaiters;
    absl::flat_hash_map<HeldFork, ForkState> forks;
  };
  using Entries = absl::flat_hash_map<RRefId, Entry>;

  absl::StatusOr<Entry*> FindOrAwaitLocked(RRefId rref,
                                           const rpc::WorkerInfo& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an empty reservation for this worker itself.
  absl::StatusOr<net::PerPeerQuota::Reservation> AdmitLocked(
      const rpc::WorkerInfo& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The reservation for a fork of `rref`. If `worker` awaits the entry, the
  // fork takes over that reservation.
  absl::StatusOr<net::PerPeerQuota::Reservation> AdmitForkLocked(
      RRefId rref, const rpc::WorkerInfo& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps `holder`, whose fork was `removed`, among those that await the entry.
  static void KeepAwaiting(Entry& entry, rpc::WorkerRun holder,
                           ForkState& removed);
  // The value has arrived or never will.
  static void EndAwaiting(Entry& entry);
  // Erases the entry if neither a fork nor an awaiter keeps it.
  void EraseIfUnusedLocked(Entries::iterator it, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerRun self_;
  net::PerPeerQuota quota_;

  mutable async::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  // The reason why values are not awaited any more; OK until then.
  absl::Status no_more_awaited_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<rpc::WorkerRun, absl::Status> lost_
      ABSL_GUARDED_BY(mutex_);
  // Tombstones of creations that were given up: they are refused.
  net::RecentKeys<RRefId> withdrawn_ ABSL_GUARDED_BY(mutex_);
  // References that were created or had lost a holder before they ended. They
  // are not awaited again when a late message names them, such as a repeated
  // fetch.
  net::RecentKeys<RRefId> ended_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_OWNER_TABLE_H_
