#ifndef HAWSER_RREF_CONTROL_CHANNEL_H_
#define HAWSER_RREF_CONTROL_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "proto/rref.pb.h"
#include "rpc/identity/worker_run.h"
#include "rref/ids.h"

namespace hawser::rref {

// Control operations reach each peer exactly once and in order, however often
// a message is lost or repeated: per peer one batch is under way at a time,
// is sent again until it is answered, and carries numbers by which the receiver
// knows what it has applied. The two ends are plain: they send nothing.

// The sending end, for all peers. Thread-safe.
class ControlSender {
 public:
  // Operations in one batch at most; the rest wait.
  static constexpr size_t kMaxBatch = 1024;

  // Queues `operation`. Dropped if `to` was closed.
  void Add(rpc::WorkerRun to, v1::RRefControlOperation operation);

  // The batch to send now; none while one is under way or nothing is queued.
  std::optional<v1::RRefControlRequest> NextBatch(rpc::WorkerRun to);

  // The batch under way was answered.
  void Finish(rpc::WorkerRun to);

  // Drops what is queued for `to`, to which nothing was ever delivered.
  void Forget(rpc::WorkerRun to);

  // Drops everything for `to`, for ever: it is lost.
  void Close(rpc::WorkerRun to);

  // Operations queued or under way.
  size_t pending() const;
  // Peers of which something is kept.
  size_t num_peers() const;

 private:
  struct Outbox {
    std::deque<v1::RRefControlOperation> queue;
    size_t under_way = 0;
    uint64_t next_sequence = 1;
  };

  mutable async::Mutex mutex_;
  absl::flat_hash_map<rpc::WorkerRun, Outbox> peers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<rpc::WorkerRun> closed_ ABSL_GUARDED_BY(mutex_);
};

// The receiving end, for all peers. Thread-safe.
class ControlReceiver {
 public:
  using Apply =
      absl::FunctionRef<v1::RRefControlResult(const v1::RRefControlOperation&)>;

  // Applies, in order, the operations of `request` that were not applied
  // before, and answers; the last batch repeated gets the same answer. `apply`
  // runs under a lock of this peer alone: it must not call back.
  //
  //   kInvalidArgument     numbers are missing before `first_sequence`, or more
  //                        operations than a sender puts into a batch.
  //   kFailedPrecondition  `from` was closed.
  absl::StatusOr<v1::RRefControlReply> Receive(
      rpc::WorkerRun from, const v1::RRefControlRequest& request, Apply apply);

  // Refuses everything from `from` from now on: it is lost. Nothing else of it
  // is kept.
  void Close(rpc::WorkerRun from);

  // Peers of which something is kept.
  size_t num_peers() const;

 private:
  struct Inbox {
    async::Mutex mutex;
    // Of the last operation applied.
    uint64_t sequence ABSL_GUARDED_BY(mutex) = 0;
    // Answer to the last batch.
    uint64_t last_first_sequence ABSL_GUARDED_BY(mutex) = 0;
    v1::RRefControlReply last_reply ABSL_GUARDED_BY(mutex);
    bool closed ABSL_GUARDED_BY(mutex) = false;
  };

  // Null if it was closed.
  std::shared_ptr<Inbox> FindInbox(rpc::WorkerRun run);

  mutable async::Mutex mutex_;
  absl::flat_hash_map<rpc::WorkerRun, std::shared_ptr<Inbox>> peers_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<rpc::WorkerRun> closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_CONTROL_CHANNEL_H_
