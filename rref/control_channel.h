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

// The two ends of a channel that delivers control operations to each peer
// exactly once and in order, although messages may be lost or repeated. At most
// one batch per peer is in flight, which is sent again until it is
// acknowledged. Its sequence numbers tell the receiver which operations were
// applied before. These classes do not send messages themselves.

// The sending end for all peers. Thread-safe.
class ControlSender {
 public:
  // Maximum number of operations in one batch.
  static constexpr size_t kMaxBatch = 1024;

  // Queues `operation`. Drops it if `to` was closed.
  void Add(rpc::WorkerRun to, v1::RRefControlOperation operation);

  // Returns the batch to send now; nullopt while one is in flight or the queue
  // is empty.
  std::optional<v1::RRefControlRequest> NextBatch(rpc::WorkerRun to);

  // The batch in flight was acknowledged.
  void Finish(rpc::WorkerRun to);

  // Drops the queue of `to`, to which nothing was delivered.
  void Forget(rpc::WorkerRun to);

  // Drops the queue of `to`, which is lost, and all later operations for it.
  void Close(rpc::WorkerRun to);

  // Number of operations queued or in flight.
  size_t pending() const;
  // Number of peers with state in this table.
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

// The receiving end for all peers. Thread-safe.
class ControlReceiver {
 public:
  using Apply =
      absl::FunctionRef<v1::RRefControlResult(const v1::RRefControlOperation&)>;

  ControlReceiver();

  // Applies, in order, the operations of `request` that were not applied
  // before, and returns the reply. A repetition of the last batch gets the same
  // reply. `apply` runs under a lock for this peer and must not call back.
  //
  //   kInvalidArgument     operations before `first_sequence` are missing, or
  //                        the batch is longer than kMaxBatch.
  //   kFailedPrecondition  `from` was closed.
  absl::StatusOr<v1::RRefControlReply> Receive(
      rpc::WorkerRun from, const v1::RRefControlRequest& request, Apply apply);

  // Refuses all later batches of `from`, which is lost, and keeps nothing else
  // of it.
  void Close(rpc::WorkerRun from);

  // Number of peers with state in this table, which were not closed.
  size_t num_peers() const;

 private:
  struct Inbox {
    async::Mutex mutex;
    // Sequence number of the last operation applied.
    uint64_t sequence ABSL_GUARDED_BY(mutex) = 0;
    // First sequence number of the last batch, and the reply to it.
    uint64_t last_first_sequence ABSL_GUARDED_BY(mutex) = 0;
    v1::RRefControlReply last_reply ABSL_GUARDED_BY(mutex);
    bool closed ABSL_GUARDED_BY(mutex) = false;
  };

  std::shared_ptr<Inbox> FindInbox(rpc::WorkerRun run);

  // That of all peers that were closed.
  const std::shared_ptr<Inbox> closed_inbox_ = std::make_shared<Inbox>();

  mutable async::Mutex mutex_;
  absl::flat_hash_map<rpc::WorkerRun, std::shared_ptr<Inbox>> peers_
      ABSL_GUARDED_BY(mutex_);
  size_t num_closed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_CONTROL_CHANNEL_H_
