#ifndef HAWSER_DIST_AUTOGRAD_CONTEXT_CONTAINER_H_
#define HAWSER_DIST_AUTOGRAD_CONTEXT_CONTAINER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "dist_autograd/context.h"
#include "dist_autograd/context_limits.h"
#include "dist_autograd/ids.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rpc/peers/per_peer_quota.h"
#include "rref/tombstones.h"

namespace hawser::dist_autograd {

// The distributed autograd contexts that live on one worker, and the last ones
// that ended: a message that comes late does not bring one back. Thread-safe.
class ContextContainer {
 public:
  // How many that ended are remembered, and how many lost workers.
  static constexpr size_t kMaxEnded = 65536;
  static constexpr size_t kMaxLost = 16384;

  // `id_start`: as of IdSource.
  ContextContainer(const rpc::WorkerRun& self, uint64_t id_start,
                   const ContextLimits& limits);

  // A new context made by this worker.
  //
  //   kResourceExhausted  there are ContextLimits::max_contexts.
  absl::StatusOr<std::shared_ptr<Context>> Create();

  // kNotFound, naming it, if it is not here: it never was, or has ended.
  absl::StatusOr<std::shared_ptr<Context>> Find(ContextId id) const;

  // This worker's part of a context that a message of `peer` names, with `peer`
  // as a source; null if the context has ended, as have all of a creator that
  // is lost, or that held this worker's rank before it.
  //
  //   kInvalidArgument    `creator` is not that of the context of this id.
  //   kAborted            `peer` is lost: nobody would tell of the end.
  //   kResourceExhausted  it would be a new one, and there are as many of
  //                       `peer`, or of all, as ContextLimits allows.
  absl::StatusOr<std::shared_ptr<Context>> FindOrCreate(
      ContextId id, rpc::Incarnation creator, const rpc::WorkerInfo& peer);

  // Takes the context out, and remembers that it ended; null if it was not
  // here. The caller ends it (Context::Release).
  std::shared_ptr<Context> Remove(ContextId id);

  // `peer` is lost: what comes from it late brings no context.
  void Refuse(const rpc::WorkerInfo& peer);

  bool HasEnded(ContextId id) const;

  std::vector<std::shared_ptr<Context>> All() const;
  size_t size() const;

  absl::StatusOr<AutogradMessageId> NextMessageId() {
    return ids_.NextMessageId();
  }

 private:
  struct Entry {
    std::shared_ptr<Context> context;
    // Of the peer that brought it; empty if it was made here.
    rpc::PerPeerQuota::Grant grant;
  };

  absl::StatusOr<std::shared_ptr<Context>> AddLocked(
      ContextId id, const rpc::WorkerRun& creator,
      rpc::PerPeerQuota::Grant grant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerRun self_;
  const size_t max_contexts_;
  IdSource ids_;

  mutable async::Mutex mutex_;
  rpc::PerPeerQuota quota_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<ContextId, Entry> contexts_ ABSL_GUARDED_BY(mutex_);
  rref::Tombstones<ContextId> ended_ ABSL_GUARDED_BY(mutex_){kMaxEnded};
  rref::Tombstones<rpc::Incarnation> lost_ ABSL_GUARDED_BY(mutex_){kMaxLost};
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_CONTAINER_H_
