// Notices to other workers that contexts have ended.

#ifndef HAWSER_DIST_AUTOGRAD_END_NOTICES_H_
#define HAWSER_DIST_AUTOGRAD_END_NOTICES_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "dist_autograd/ids.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"

namespace hawser::dist_autograd {

// A training loop ends a context for each step. Notices to one worker therefore
// travel together: the first at once, those of the next kInterval at its end.
// What is held when this worker leaves is not sent: its departure tells the
// others. Owned by a shared_ptr. Thread-safe.
class EndNotices : public std::enable_shared_from_this<EndNotices> {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(5);
  // This many are sent at once.
  static constexpr int kMaxHeld = 32;

  // Sends one message, in the thread that calls Add or on `clock`.
  using Send = std::function<void(const rpc::WorkerInfo& to,
                                  const v1::ReleaseContextRequest& request)>;

  EndNotices(async::Clock* clock, Send send);

  // The clock must not have been destroyed.
  void Add(ContextId context, const rpc::WorkerInfo& to);

 private:
  // Exists during an interval.
  struct Outbox {
    rpc::WorkerInfo to;
    v1::ReleaseContextRequest held;
  };

  void BeginInterval(const rpc::WorkerRun& to);
  void EndInterval(const rpc::WorkerRun& to);

  async::Clock* const clock_;
  const Send send_;

  async::Mutex mutex_;
  absl::flat_hash_map<rpc::WorkerRun, Outbox> outboxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_END_NOTICES_H_
