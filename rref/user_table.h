#ifndef HAWSER_RREF_USER_TABLE_H_
#define HAWSER_RREF_USER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "net/recent_keys.h"
#include "rpc/identity/worker_run.h"
#include "rref/ids.h"

namespace hawser::rref {

// Table of the references whose values live on other workers: this worker's own
// copies (users), and the copies that it gave away and that have not arrived
// yet (pending children).
//
// The owner is notified of the end of a copy (G1 of docs/rref.md) once the copy
// is settled, all its handles are destroyed, and its children have arrived
// (G2).
//
// The table does not send messages. It returns messages and completions as
// Actions, which the caller runs without a lock. Thread-safe.
class UserTable {
 public:
  struct Message {
    enum class Kind { kChildAccept, kUserDelete, kWithdrawCreation };
    Kind kind = Kind::kUserDelete;
    rpc::WorkerRun to;
    RRefId rref;
    ForkId fork;
  };

  struct Actions {
    std::vector<Message> messages;
    std::vector<std::pair<async::Promise<void>, absl::Status>> completions;

    void Append(Actions other);
  };

  struct PendingChild {
    RRefId rref;
    ForkId fork;
    rpc::WorkerRun to;
  };

  struct ReceivedFork {
    // Completes when the owner knows the copy.
    async::Future<void> confirmed;
    // Whether a fork request must be sent to the owner.
    bool request_owner = false;
  };

  struct Counts {
    size_t users = 0;
    size_t unconfirmed_users = 0;
    size_t pending_children = 0;
    // Lost workers, remembered so that their late messages are refused.
    size_t lost_workers = 0;
  };

  UserTable(rpc::WorkerRun self, size_t tombstone_capacity);

  // Adds the copy that a remote creation returns to its caller, with one
  // handle.
  async::Future<void> StartCreation(RRefId rref, ForkId fork,
                                    rpc::WorkerRun owner);

  // The creation was acknowledged or failed. Keeps the error with the copy.
  Actions FinishCreation(ForkId fork, const absl::Status& status);

  // Adds the copy of a reference that arrived from `parent`, or a handle if the
  // copy exists. A copy from the owner is confirmed immediately. `fork` must be
  // an id of `parent`.
  //
  //   kInvalidArgument     the copy exists, of another reference; or `parent`
  //   is
  //                        this worker, which did not give this fork to itself.
  //   kAborted             the sender withdrew the fork.
  //   kFailedPrecondition  after Close.
  //   the error of OnWorkerLost if the owner is lost.
  absl::StatusOr<ReceivedFork> Receive(RRefId rref, ForkId fork,
                                       rpc::WorkerRun owner,
                                       rpc::WorkerRun parent);

  // Handles the owner's reply to the fork request. Releases the parent, also
  // after an error.
  Actions FinishRequest(ForkId fork, const absl::Status& status);

  // Keeps the copy `parent` until `child`, given to `to`, is accepted.
  //
  //   the error kept with `parent`, if any; kFailedPrecondition after Close.
  absl::Status AddChild(ForkId parent, ForkId child, rpc::WorkerRun to);

  // `child` has arrived at `to` or never will. Ignores an unknown child, and
  // one that was given to another worker.
  Actions AcceptChild(ForkId child, rpc::WorkerRun to);

  // One handle was destroyed. Ignored after Close.
  Actions Release(ForkId fork);

  // Returns whether the copy is here. If not, it is refused when it arrives.
  bool Withdraw(ForkId fork);

  // Whether Withdraw refused `fork`.
  bool IsWithdrawn(ForkId fork) const;

  // Settles and removes all copies, with or without handles and children. They
  // return errors from now on. The owners are notified.
  Actions Close();

  // The error kept with a copy: failed creation, failed request or lost owner.
  absl::Status Check(ForkId fork) const;

  // Children that have been pending since before the last call of this
  // function.
  std::vector<PendingChild> TakeStaleChildren();

  // Keeps `error` with all copies of values owned by `lost`, also with those
  // that arrive later, and drops the children given to it. Does not complete a
  // creation in flight: FinishCreation must follow, because only its call knows
  // if the function may have run.
  Actions OnWorkerLost(rpc::WorkerRun lost, const absl::Status& error);

  // Like OnWorkerLost, for a worker that is not known as a member of the job.
  // It is not remembered, because peers may name any number of them.
  Actions OnWorkerUnknown(rpc::WorkerRun unknown, const absl::Status& error);

  Counts counts() const;

 private:
  struct User {
    RRefId rref;
    rpc::WorkerRun owner;
    rpc::WorkerRun parent;
    int64_t handles = 1;
    int64_t children = 0;
    // The creation or the request has completed.
    bool settled = false;
    // The owner may still hold this fork although the creation failed.
    bool creation_unacknowledged = false;
    // The owner does not need to be notified of the end.
    bool unknown_to_owner = false;
    // Settled by FinishCreation.
    bool is_creation = false;
    // The error of the owner's loss during a creation in flight.
    absl::Status loss;
    absl::Status error;
    async::Promise<void> confirmed;
    async::Future<void> confirmed_future;
  };
  struct Child {
    ForkId parent;
    rpc::WorkerRun to;
    uint64_t generation = 0;
  };

  // `fork` must not be in the table.
  void AddUserLocked(ForkId fork, User user)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether this worker gave `fork` of `rref` to itself.
  bool IsOwnChildLocked(RRefId rref, ForkId fork, rpc::WorkerRun owner) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleLocked(ForkId fork, User& user, const absl::Status& status,
                    Actions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Actions LoseLocked(rpc::WorkerRun departed, const absl::Status& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveIfUnusedLocked(ForkId fork, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerRun self_;

  mutable async::Mutex mutex_;
  absl::flat_hash_map<ForkId, User> users_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ForkId, Child> children_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<rpc::WorkerRun, absl::Status> lost_
      ABSL_GUARDED_BY(mutex_);
  net::RecentKeys<ForkId> withdrawn_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_USER_TABLE_H_
