#ifndef HAWSER_DIST_AUTOGRAD_CONTEXT_H_
#define HAWSER_DIST_AUTOGRAD_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
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
// sent and received, the gradients of its leaves, and the running backward
// pass.
//
// Thread-safe. After Release it is empty and records nothing; its remaining
// users get kFailedPrecondition.
class Context final : public GradientSender,
                      public std::enable_shared_from_this<Context> {
 public:
  // Number of root workers whose last passes are remembered. Of more, some are
  // forgotten.
  static constexpr size_t kMaxRoots = 1024;

  struct Messages {
    std::vector<std::shared_ptr<SendFunction>> sends;
    std::vector<std::shared_ptr<RecvFunction>> recvs;
  };

  // `creator`: the incarnation of the creator, whose worker id is in `id`.
  Context(ContextId id, rpc::WorkerRun creator) : id_(id), creator_(creator) {}

  ContextId id() const { return id_; }
  const rpc::WorkerRun& creator() const { return creator_; }

  // --- Recording.

  // A message of this context is sent to, or came from, `peer`. AddTarget
  // returns false after Release: the message must then be sent without the
  // context.
  bool AddTarget(const rpc::WorkerInfo& peer);
  void AddSource(const rpc::WorkerInfo& peer);
  // `peer` has lost its sources: this worker must notify it of the end. Returns
  // false after Release.
  bool Reparent(const rpc::WorkerInfo& peer);

  // RecordSend records a message to `peer` whose `tensors` require gradients.
  // RecordRecv records one from `peer` and makes its `tensors` results of a
  // recv function. Without effect after Release.
  void RecordSend(AutogradMessageId message, const rpc::WorkerInfo& peer,
                  const std::vector<Tensor>& tensors);
  void RecordRecv(AutogradMessageId message, const rpc::WorkerInfo& peer,
                  const std::vector<Tensor>& tensors);

  // All participants that this worker knows.
  std::vector<rpc::WorkerInfo> peers() const;
  bool HasPeer(const rpc::WorkerRun& worker) const;
  bool HasSource(const rpc::WorkerRun& worker) const;

  // All messages recorded so far.
  Messages messages() const;

  // --- Gradients.

  // Adds to the gradient of the leaf `variable`. Takes over the memory of its
  // first gradient unless that is shared.
  absl::Status AddGradient(const Tensor& variable, Tensor gradient);

  // kFailedPrecondition after Release.
  absl::StatusOr<Gradients> gradients() const;
  // Undefined if the leaf has none.
  Tensor gradient(const Tensor& variable) const;

  // --- The backward pass.

  // Registers `pass` as the running one.
  //
  //   kFailedPrecondition  another one is running, or after Release.
  absl::Status BeginPass(std::shared_ptr<BackwardPass> pass);
  void EndPass(const BackwardPass& pass, const absl::Status& status);
  std::shared_ptr<BackwardPass> pass() const;

  // Takes part in the pass of `options`. Returns the running pass, a new one
  // that is not started, or, for late messages, the one that has ended
  // successfully.
  //
  //   kInvalidArgument     its number is 0.
  //   kAborted             it is older than another pass of its root worker.
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

  // Refuses the pass if a message brings it later. Returns the running pass if
  // it is that one.
  std::shared_ptr<BackwardPass> RefusePass(const BackwardPassId& id,
                                           const absl::Status& status);

  // The running pass does not end before `work`, whose error ends it. Called by
  // a node or hook of that pass; kFailedPrecondition otherwise.
  absl::Status AddWork(const async::Future<void>& work);

  // Runs `callback` with the error of each pass that fails from now on, in the
  // thread that ends it, with no lock held.
  using FailedPassCallback = std::function<void(const absl::Status& error)>;
  void OnFailedPass(FailedPassCallback callback);

  // Gives the gradients to the running pass. kFailedPrecondition unless that
  // pass runs `recv`.
  absl::Status SendGradients(const RecvFunction& recv,
                             std::vector<Tensor> gradients) override;

  // Clears the context. Returns the work that remains for the caller.
  struct Remains {
    // Workers to which messages were sent; they must be notified of the end.
    std::vector<rpc::WorkerInfo> targets;
    // The pass to fail; null if none was running.
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
  // Returns an object to destroy without the lock.
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
  // The last ended pass of each root worker, of kMaxRoots at most.
  struct EndedPass {
    uint64_t number = 0;
    absl::Status status;
    // Null if it failed.
    std::shared_ptr<BackwardPass> pass;
  };
  absl::flat_hash_map<rpc::WorkerRun, EndedPass> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<FailedPassCallback> failed_pass_callbacks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_H_
