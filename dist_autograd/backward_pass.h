#ifndef HAWSER_DIST_AUTOGRAD_BACKWARD_PASS_H_
#define HAWSER_DIST_AUTOGRAD_BACKWARD_PASS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/wait_poller.h"
#include "autograd/graph_task.h"
#include "dist_autograd/context.h"
#include "dist_autograd/ids.h"
#include "dist_autograd/recv_function.h"
#include "dist_autograd/send_function.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/identity/worker_run.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

// Id of one backward pass.
struct BackwardPassId {
  ContextId context{};
  // The worker that called Backward.
  rpc::WorkerRun root;
  // Counter of that worker.
  uint64_t number = 0;

  friend bool operator==(const BackwardPassId&,
                         const BackwardPassId&) = default;
};

struct BackwardPassOptions {
  BackwardPassId id;
  bool retain_graph = false;
  // Notify senders of forward messages that give no gradient, so that they do
  // not wait for them (SMART mode; otherwise FAST).
  bool smart = true;
};

// Interface through which a pass sends messages to its other participants.
class BackwardPassTransport {
 public:
  virtual ~BackwardPassTransport() = default;

  // Delivers `request` at least once. Completes with the reply, or with an
  // error that names the worker.
  virtual async::Future<void> SendGradients(const rpc::WorkerRun& to,
                                            v1::GradientRequest request,
                                            std::vector<Tensor> tensors) = 0;
  // Notifies a participant, best effort, that the pass failed with `error`. The
  // error began at this worker unless it has an ErrorDetail.
  virtual void SendAbort(const rpc::WorkerRun& to,
                         const v1::BackwardPassId& pass,
                         const absl::Status& error) = 0;
};

// One worker's part of a backward pass.
//
//   1. Create takes the send and recv functions recorded so far and counts the
//      dependencies of the local graph: from the roots, if this is the root
//      worker, and from all send functions.
//   2. Start runs the roots; Receive feeds send functions as gradients arrive.
//      Recv functions that run send gradients to their peers (SendGradients).
//   3. In smart mode each worker also notifies the senders of messages whose
//      recv functions will not run (SkipUnreached). The first message between
//      two workers has a manifest of the forward messages that each knows, so
//      that every send function is fed or skipped.
//   4. The reply to the first message that reached a worker is held until its
//      graph is done and its own messages are acknowledged. The last reply to
//      the root worker ends the pass.
//   5. The first error ends the local graph and is sent to all participants
//      that this worker knows, which do the same.
//
// Cost: one message per forward message that had gradients. Smart mode sends
// further messages only if some forward messages are unused.
//
// Thread-safe.
class BackwardPass : public std::enable_shared_from_this<BackwardPass> {
 public:
  // `context` and `transport` must outlive the pass's `done`, which releases
  // both.
  static absl::StatusOr<std::shared_ptr<BackwardPass>> Create(
      std::shared_ptr<Context> context, BackwardPassOptions options,
      const std::vector<Tensor>& roots,
      std::shared_ptr<BackwardPassTransport> transport);

  const BackwardPassOptions& options() const { return options_; }

  // Begins with one gradient per root. Must be called once, after the context
  // has registered the pass.
  void Start(std::vector<Tensor> root_gradients);

  // Applies a message of another participant, which may arrive after the end.
  // Returns the future of the reply. The reply to the message that made this
  // worker take part is ready when `done` is. `begins`: the caller has started
  // this part for the message. The part does not end before the messages that
  // both of them cause have been sent.
  async::Future<void> Receive(const rpc::WorkerRun& from,
                              const v1::GradientRequest& request,
                              std::vector<Tensor> tensors, bool begins);

  // The pass whose nodes the calling thread runs; null if there is none.
  static const BackwardPass* Current();
  bool RunsHere() const { return Current() == this; }

  // This part does not end before `work`, whose error fails the pass. Called by
  // a node or hook of the pass.
  void AddWork(const async::Future<void>& work);

  // Sends the gradients of a recv function that ran.
  absl::Status SendGradients(const RecvFunction& recv,
                             std::vector<Tensor> gradients);

  // Ends the pass with `error`, which must not be OK, on this worker and on its
  // peers. The first error is that of the pass: later failures and messages get
  // it too. Without effect once done.
  void Fail(const absl::Status& error);

  // Completes when this worker's part, and all messages that it caused, are
  // done.
  async::Future<void> done() const { return done_future_; }

  // The poller of the messages sent so far, whose replies precede the end; may
  // be null.
  std::shared_ptr<async::WaitPoller> poller() const;

  // Forward messages whose gradients have not arrived: "0:3 to worker 2, ...".
  std::string DescribeMissing() const;

 private:
  // State of the exchange with one other worker.
  struct PeerExchange {
    uint64_t last_sequence = 0;
    bool heard_of = false;
    // Number of messages to it that have not been fed or skipped yet.
    int64_t awaited = 0;
    // Recv functions to report as skipped in the next message.
    std::vector<uint64_t> skips;
  };

  BackwardPass(std::shared_ptr<Context> context, BackwardPassOptions options,
               std::shared_ptr<BackwardPassTransport> transport);

  absl::Status Prepare(const std::vector<Tensor>& roots);

  absl::Status ApplyGradients(const rpc::WorkerRun& from,
                              const v1::GradientRequest& request,
                              std::vector<Tensor> tensors);
  absl::Status ApplyManifest(const rpc::WorkerRun& from,
                             const v1::MessageManifest& manifest);
  absl::StatusOr<std::shared_ptr<SendFunction>> FindSend(
      uint64_t message, const rpc::WorkerRun& from);
  absl::Status SkipSend(uint64_t message, const rpc::WorkerRun& from);

  // Finds the recv functions that roots and live send functions do not lead to.
  // Marks their messages as skipped, to be reported to the senders.
  void SkipUnreached();
  // Sends the ids of skipped messages. Sends an empty message to workers whose
  // gradients are awaited and with which nothing was exchanged yet.
  void Announce();
  // Sends a request to `to`, together with all pending skips.
  void Send(const rpc::WorkerRun& to, v1::GradientRequest request,
            std::vector<Tensor> tensors);
  v1::MessageManifest ManifestLocked(const rpc::WorkerRun& to) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Decrements `outstanding_`, and ends the part at zero.
  void FinishOne();
  // The same once `work` has completed; its error fails the pass.
  void FinishWith(const async::Future<void>& work);
  void Complete(async::Promise<void> done, const absl::Status& status);

  const BackwardPassOptions options_;
  const std::shared_ptr<Context> context_;
  const std::shared_ptr<BackwardPassTransport> transport_;

  // Constant after Create.
  std::shared_ptr<autograd::GraphTask> task_;
  std::vector<std::shared_ptr<autograd::Node>> root_nodes_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<SendFunction>> sends_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<RecvFunction>> recvs_;

  mutable async::Mutex mutex_;
  // Messages of `sends_` that were fed.
  absl::flat_hash_set<uint64_t> fed_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> skipped_ ABSL_GUARDED_BY(mutex_);
  // Messages of `recvs_` whose senders were notified, or will be with the next
  // message.
  absl::flat_hash_set<uint64_t> notified_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<rpc::WorkerRun, PeerExchange> peers_
      ABSL_GUARDED_BY(mutex_);
  // The sender and the sequence number of the message whose reply is held.
  std::optional<std::pair<rpc::WorkerRun, uint64_t>> held_
      ABSL_GUARDED_BY(mutex_);
  // The local graph; the start, with the message that led to it; each message
  // that is not acknowledged; each message that is being received; and the work
  // of nodes.
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 2;
  std::vector<std::shared_ptr<async::WaitPoller>> pollers_
      ABSL_GUARDED_BY(mutex_);
  // Empty once the pass is done.
  std::optional<async::Promise<void>> done_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  async::Future<void> done_future_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_BACKWARD_PASS_H_
