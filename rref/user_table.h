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
#include "rpc/identity/worker_run.h"
#include "rref/ids.h"
#include "rref/tombstones.h"

namespace hawser::rref {

// Table of the references whose values live on other workers: this worker's own
// copies (users), and the copies that it gave away and that have not arrived
// yet (pending children).
//
// The owner is told of a copy's end (G1 of docs/rref.md) once the copy is
// settled, no handle names it, and no child of it is pending (G2).
//
// Sends nothing: what is to be sent or completed comes back as Actions, to be
// run by the caller without a lock. Thread-safe.
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
    // A fork request must go to the owner.
    bool request_owner = false;
  };

  struct Counts {
    size_t users = 0;
    size_t unconfirmed_users = 0;
    size_t pending_children = 0;
    // Remembered, so that nothing of theirs comes to life.
    size_t lost_workers = 0;
  };

  UserTable(rpc::WorkerRun self, size_t tombstone_capacity);

  // Adds the copy with one handle that a remote creation gives its caller.
  async::Future<void> StartCreation(RRefId rref, ForkId fork,
                                    rpc::WorkerRun owner);

  // The creation was acknowledged, or failed in whatever way: the error is
  // kept with the copy.
  Actions FinishCreation(ForkId fork, const absl::Status& status);

  // Adds the copy named by a reference that arrived from `parent`, or one more
  // handle of it. A copy from the owner itself is confirmed at once.
  //
  //   kAborted             the sender withdrew the fork.
  //   kFailedPrecondition  after Close.
  //   otherwise            the owner is lost: the error OnWorkerLost was given.
  absl::StatusOr<ReceivedFork> Receive(RRefId rref, ForkId fork,
                                       rpc::WorkerRun owner,
                                       rpc::WorkerRun parent);

  // The owner's answer to the fork request. The parent may let go in any case.
  Actions FinishRequest(ForkId fork, const absl::Status& status);

  // Keeps the copy `parent` until `child`, given to `to`, is accepted.
  //
  //   the error kept with `parent`, if any; kFailedPrecondition after Close.
  absl::Status AddChild(ForkId parent, ForkId child, rpc::WorkerRun to);

  // `child` has arrived, or never will. Ignored if unknown.
  Actions AcceptChild(ForkId child);

  // One handle is gone. Ignored after Close.
  Actions Release(ForkId fork);

  // Whether the copy is here. If not it will be refused when it arrives.
  bool Withdraw(ForkId fork);

  // Whether Withdraw refused `fork`.
  bool IsWithdrawn(ForkId fork) const;

  // Settles and removes every copy, whatever handles and children it has:
  // those only give errors from now on, and owners are told.
  Actions Close();

  // The error kept with a copy: failed creation or request, lost owner.
  absl::Status Check(ForkId fork) const;

  // Children pending since before the last call of this function.
  std::vector<PendingChild> TakeStaleChildren();

  // Copies of values owned by `lost` keep `error`, also those that come later;
  // children given to it are dropped. A creation under way is told by its own
  // call, which knows whether it may have run: FinishCreation must follow.
  Actions OnWorkerLost(rpc::WorkerRun lost, const absl::Status& error);

  // As OnWorkerLost, for one that is no member of the job as far as is known.
  // It is not remembered: peers may name as many of those as they like.
  Actions OnWorkerUnknown(rpc::WorkerRun unknown, const absl::Status& error);

  Counts counts() const;

 private:
  struct User {
    RRefId rref;
    rpc::WorkerRun owner;
    rpc::WorkerRun parent;
    int64_t handles = 1;
    int64_t children = 0;
    // Creation or request has an answer.
    bool settled = false;
    // The owner may still hold this fork although creation failed.
    bool creation_unacknowledged = false;
    // The owner need not be told of the end.
    bool unknown_to_owner = false;
    // Settled by FinishCreation.
    bool is_creation = false;
    // Why the owner was lost while a creation was under way.
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

  void AddUserLocked(ForkId fork, User user)
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
  Tombstones<ForkId> withdrawn_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_USER_TABLE_H_
