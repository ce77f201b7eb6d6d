#ifndef HAWSER_DIST_AUTOGRAD_ENGINE_H_
#define HAWSER_DIST_AUTOGRAD_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/task_local.h"
#include "dist_autograd/backward_pass.h"
#include "dist_autograd/context.h"
#include "dist_autograd/context_container.h"
#include "dist_autograd/context_limits.h"
#include "dist_autograd/ids.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/agent/service_host.h"
#include "rpc/wire/message_interceptor.h"
#include "rref/host_handle.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

struct DistAutogradOptions {
  // Timeout of one attempt to deliver a gradient message. The first message of
  // a pass is answered only when the pass ends, so a timeout resends its
  // tensors needlessly: set it only for transports that lose messages. Unset:
  // as long as the pass.
  std::optional<absl::Duration> gradient_attempt_timeout = {};
  // The same for messages without tensors.
  absl::Duration control_attempt_timeout = absl::Seconds(2);
  ContextLimits limits = {};
};

enum class BackwardMode {
  // Finds out which forward messages the roots do not depend on; nobody waits
  // for their gradients.
  kSmart,
  // Every forward message of the context that carried tensors which require
  // gradients must lead to a root. If one does not, the pass ends at its
  // timeout with an error that names it.
  kFast,
};

struct BackwardOptions {
  // Keep saved tensors, so that another pass can follow.
  bool retain_graph = false;
  BackwardMode mode = BackwardMode::kSmart;
  // Of the whole pass; unset: the agent's default.
  std::optional<absl::Duration> timeout = {};
};

// Distributed autograd of one worker: its contexts, what messages record, and
// its part of backward passes. Described in docs/dist_autograd.md.
//
// Shared by the agent's DistAutogradService and by what may outlive the agent:
// after Stop all operations give kFailedPrecondition. Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(rpc::ServiceHost& host, DistAutogradOptions options);

  // --- Contexts.

  absl::StatusOr<std::shared_ptr<Context>> CreateContext();
  absl::StatusOr<std::shared_ptr<Context>> FindContext(ContextId id) const;
  // Ends the context here and on all workers it reached.
  void ReleaseContext(ContextId id);
  size_t num_contexts() const { return contexts_.size(); }
  // Of contexts here, those in which a backward pass is running.
  size_t num_passes() const;

  // Makes `context` that of the calling work, and which it is.
  class CurrentContext;
  std::shared_ptr<Context> current_context() const;

  // --- Backward passes.

  async::Future<void> Backward(ContextId context,
                               const std::vector<Tensor>& roots,
                               const BackwardOptions& options);

  // --- What messages record: rpc::MessageInterceptor.

  absl::StatusOr<std::optional<rpc::AutogradMetadata>> OnSend(
      const rpc::WorkerInfo& peer, std::span<const Tensor> tensors);
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
      std::span<Tensor> tensors);
  absl::Status OnReceiveReply(const rpc::WorkerInfo& peer,
                              const rpc::AutogradMetadata& metadata,
                              std::span<Tensor> tensors);

  // --- What DistAutogradService passes on.

  //   kInvalidArgument  a limit is not positive.
  absl::Status Start();
  void OnWorkerLost(const rpc::WorkerInfo& worker, const absl::Status& status);
  void Stop();

 private:
  async::Future<rpc::Message<v1::GradientReply>> HandleGradient(
      const rpc::MethodCall& call, rpc::Message<v1::GradientRequest> request);
  async::Future<rpc::Message<v1::AbortPassReply>> HandleAbortPass(
      const rpc::MethodCall& call, rpc::Message<v1::AbortPassRequest> request);
  async::Future<rpc::Message<v1::ReleaseContextReply>> HandleReleaseContext(
      const rpc::MethodCall& call,
      rpc::Message<v1::ReleaseContextRequest> request);
  async::Future<rpc::Message<v1::ReparentContextsReply>> HandleReparentContexts(
      const rpc::MethodCall& call,
      rpc::Message<v1::ReparentContextsRequest> request);
  async::Future<rpc::Message<v1::BackwardReferenceReply>>
  HandleBackwardReference(const rpc::MethodCall& call,
                          rpc::Message<v1::BackwardReferenceRequest> request);

  std::shared_ptr<BackwardPassTransport> MakeTransport(
      const Context& context, async::MonotonicTime deadline);
  // Fails `pass` at `deadline`, naming what it waits for.
  void FailAt(async::MonotonicTime deadline,
              const std::shared_ptr<BackwardPass>& pass);

  // Makes the flagged ones of `tensors` results of a recv function.
  absl::Status RecordReceived(Context& context, const rpc::WorkerInfo& peer,
                              const rpc::AutogradMetadata& metadata,
                              std::span<Tensor> tensors);

  // Ends this worker's part of a context; returns who is to be told.
  std::vector<rpc::WorkerInfo> EndContext(ContextId id,
                                          const absl::Status& reason);
  void NotifyOfEnd(ContextId id, const std::vector<rpc::WorkerInfo>& workers);
  // Asks the creators of contexts to tell of their end.
  void AskForReparenting(const std::vector<std::shared_ptr<Context>>& contexts);

  rpc::MethodCallOptions ControlOptions() const;

  const rpc::WorkerInfo self_;
  const DistAutogradOptions options_;
  const std::shared_ptr<rref::HostHandle> host_;
  ContextContainer contexts_;
  std::atomic<uint64_t> next_pass_{1};
};

// Makes a context that of the calling work until the end of the scope. Follows
// the work onto other threads.
class Engine::CurrentContext {
 public:
  explicit CurrentContext(std::shared_ptr<Context> context);

 private:
  async::TaskLocal<std::shared_ptr<Context>>::Scope scope_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_ENGINE_H_
