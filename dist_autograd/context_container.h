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
#include "net/per_peer_quota.h"
#include "net/recent_keys.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"

namespace hawser::dist_autograd {

// The distributed autograd contexts of one worker, and the ids of those that
// ended last, so that a late message does not bring one back. Thread-safe.
class ContextContainer {
 public:
  // Number of ended contexts to remember, and of lost workers.
  static constexpr size_t kMaxEnded = 65536;
  static constexpr size_t kMaxLost = 16384;

  // `id_start`: see IdSource.
  ContextContainer(const rpc::WorkerRun& self, uint64_t id_start,
                   const ContextLimits& limits);

  // Creates a context of this worker.
  //
  //   kResourceExhausted  ContextLimits::max_contexts exist.
  absl::StatusOr<std::shared_ptr<Context>> Create();

  // kNotFound, naming the context, if it never was on this worker or has ended.
  absl::StatusOr<std::shared_ptr<Context>> Find(ContextId id) const;

  // Returns this worker's part of a context that a message of `peer` names,
  // with `peer` as a source. Returns null if its creator has ended the context,
  // as have all creators that held this worker's rank before.
  //
  //   kInvalidArgument    `creator` did not create the context of this id.
  //   kAborted            `peer` is lost, so it would not notify of the end; or
  //                       the creator is, or the context was cut off, so that
  //                       no gradient could come. Others may consider the
  //                       creator alive.
  //   kResourceExhausted  it would be a new context above a limit of
  //                       ContextLimits.
  absl::StatusOr<std::shared_ptr<Context>> FindOrCreate(
      ContextId id, rpc::Incarnation creator, const rpc::WorkerInfo& peer);

  // Cause of the end of a context on this worker.
  enum class End {
    // The creator has ended it.
    kEnded,
    // Its creator, which may still use it, is lost or out of reach.
    kCutOff,
  };
  // Removes the context and remembers that it ended. Returns null if it was not
  // here. The caller must end it (Context::Release).
  std::shared_ptr<Context> Remove(ContextId id, End end = End::kEnded);

  // `peer` is lost: its late messages do not bring contexts.
  void Refuse(const rpc::WorkerInfo& peer);

  // kAborted if the creator of `context` is lost, or it was cut off.
  absl::Status CheckCreator(const Context& context) const;

  bool HasEnded(ContextId id) const;

  std::vector<std::shared_ptr<Context>> All() const;
  size_t size() const;

  absl::StatusOr<AutogradMessageId> NextMessageId() {
    return ids_.NextMessageId();
  }

 private:
  struct Entry {
    std::shared_ptr<Context> context;
    // Counts for the peer that brought it; empty for a context of this worker.
    net::PerPeerQuota::Reservation reservation;
  };

  absl::StatusOr<std::shared_ptr<Context>> AddLocked(
      ContextId id, const rpc::WorkerRun& creator,
      net::PerPeerQuota::Reservation reservation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerRun self_;
  const size_t max_contexts_;
  IdSource ids_;
  net::PerPeerQuota quota_;

  mutable async::Mutex mutex_;
  absl::flat_hash_map<ContextId, Entry> contexts_ ABSL_GUARDED_BY(mutex_);
  net::RecentKeys<ContextId, End> ended_ ABSL_GUARDED_BY(mutex_){kMaxEnded};
  net::RecentKeys<rpc::Incarnation> lost_ ABSL_GUARDED_BY(mutex_){kMaxLost};
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_CONTAINER_H_
