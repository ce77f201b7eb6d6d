#ifndef HAWSER_DIST_AUTOGRAD_CONTEXT_H_
#define HAWSER_DIST_AUTOGRAD_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "dist_autograd/gradients.h"
#include "dist_autograd/ids.h"
#include "dist_autograd/recv_function.h"
#include "dist_autograd/send_function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

class BackwardPass;
class BackwardPassTransport;
struct BackwardPassId;
struct BackwardPassOptions;

// One worker's part of a distributed autograd context: the forward messages it
// sent and received, the gradients of its leaves, and the backward pass that
// is running.
//
// Thread-safe. After Release it holds nothing and records nothing; whoever
// still has it gets kFailedPrecondition.
class Context final : public GradientSender,
                      public std::enable_shared_from_this<Context> {
 public:
  struct Messages {
    std::vector<std::shared_ptr<SendFunction>> sends;
    std::vector<std::shared_ptr<RecvFunction>> recvs;
  };

  // `creator`: the run of the worker that made it, whose id is that in `id`.
  Context(ContextId id, rpc::WorkerRun creator) : id_(id), creator_(creator) {}

  ContextId id() const { return id_; }
  const rpc::WorkerRun& creator() const { return creator_; }

  // --- Recording.

  // A message of this context goes to, or came from, `peer`. False after
  // Release: none is to go that brings the context.
  bool AddTarget(const rpc::WorkerInfo& peer);
  void AddSource(const rpc::WorkerInfo& peer);
  // `peer` has lost its sources, and is to hear of the end from here. False
  // after Release.
  bool Reparent(const rpc::WorkerInfo& peer);

  // Records a message to `peer` whose `tensors` require gradients; the other
  // way round, makes it the history of `tensors`. Without effect after Release.
  void RecordSend(AutogradMessageId message, const rpc::WorkerInfo& peer,
                  const std::vector<Tensor>& tensors);
  void RecordRecv(AutogradMessageId message, const rpc::WorkerInfo& peer,
                  const std::vector<Tensor>& tensors);

  // All workers that take part, as far as this one knows.
  std::vector<rpc::WorkerInfo> peers() const;
  bool HasPeer(const rpc::WorkerRun& worker) const;
  bool HasSource(const rpc::WorkerRun& worker) const;

  // All messages recorded so far.
  Messages messages() const;

  // --- Gradients.

  // Adds to the gradient of the leaf `variable`; takes over the memory of the
  // first one if nobody else holds it.
  absl::Status AddGradient(const Tensor& variable, Tensor gradient);

  // kFailedPrecondition after Release.
  absl::StatusOr<Gradients> gradients() const;
  // Undefined if there is none.
  Tensor gradient(const Tensor& variable) const;

  // --- The backward pass.

  // Makes `pass` the running one.
  //
  //   kFailedPrecondition  another one is running, or after Release.
  absl::Status BeginPass(std::shared_ptr<BackwardPass> pass);
  void EndPass(const BackwardPass& pass, const absl::Status& status);
  std::shared_ptr<BackwardPass> pass() const;

  // Takes part in the pass that `options` names: the running one, a new one
  // that is not started, or, for messages that come late, the one that has
  // ended well.
  //
  //   kAborted             it is older than another one of its root worker.
  //   kFailedPrecondition  a pass of another worker is running, or after
  //                        Release.
  //   the error that it ended with.
  struct Participation {
    std::shared_ptr<BackwardPass> pass;
    bool is_new = false;
  };
  absl::StatusOr<Participation> JoinPass(
      const BackwardPassOptions& options,
      absl::FunctionRef<std::shared_ptr<BackwardPassTransport>()>
          make_transport);

  // Refuses the pass if it comes up later; the running one, if it is that.
  std::shared_ptr<BackwardPass> RefusePass(const BackwardPassId& id,
                                           const absl::Status& status);

  // Gives the gradients to the running pass; kFailedPrecondition unless it is
  // that pass which runs `recv`.
  absl::Status SendGradients(const RecvFunction& recv,
                             std::vector<Tensor> gradients) override;

  // Forgets everything but what the caller is to do.
  struct Remains {
    // Workers to which messages went: those that must be told of the end.
    std::vector<rpc::WorkerInfo> targets;
    // To be failed; null if none was running.
    std::shared_ptr<BackwardPass> pass;
  };
  Remains Release();

 private:
  struct PeerRecord {
    rpc::WorkerInfo worker;
    bool is_target = false;
    bool is_source = false;
  };

  // Null after Release.
  PeerRecord* PeerLocked(const rpc::WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns what is to be destroyed without the lock.
  std::shared_ptr<BackwardPass> RecordEndLocked(
      const BackwardPassId& id, const absl::Status& status,
      std::shared_ptr<BackwardPass> pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ContextId id_;
  const rpc::WorkerRun creator_;

  mutable async::Mutex mutex_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<rpc::WorkerRun, PeerRecord> peers_
      ABSL_GUARDED_BY(mutex_);
  Messages messages_ ABSL_GUARDED_BY(mutex_);
  Gradients gradients_ ABSL_GUARDED_BY(mutex_);
  // Position in `gradients_` by Tensor::id().
  absl::flat_hash_map<uint64_t, size_t> gradient_index_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<BackwardPass> pass_ ABSL_GUARDED_BY(mutex_);
  // The last pass of each root worker that ended.
  struct EndedPass {
    uint64_t number = 0;
    absl::Status status;
    // Set if it ended well.
    std::shared_ptr<BackwardPass> pass;
  };
  absl::flat_hash_map<rpc::WorkerRun, EndedPass> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_H_
