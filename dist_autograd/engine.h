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
#include "dist_autograd/end_notices.h"
#include "dist_autograd/ids.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

struct DistAutogradOptions {
  // Timeout of one attempt to deliver a gradient message. The first message of
  // a pass is acknowledged only when the pass ends, so a timeout resends its
  // tensors needlessly: set it only for transports that lose messages. Unset:
  // the time left of the pass.
  std::optional<absl::Duration> gradient_attempt_timeout = {};
  // The same for messages without tensors.
  absl::Duration control_attempt_timeout = absl::Seconds(2);
  ContextLimits limits = {};
};

enum class BackwardMode {
  // Finds the forward messages on which the roots do not depend, so that their
  // senders do not wait for gradients.
  kSmart,
  // Requires that every forward message of the context with tensors that
  // require gradients leads to a root. Otherwise the pass fails at its timeout
  // with an error that names the message.
  kFast,
};

struct BackwardOptions {
  // Keeps saved tensors, so that another pass can follow.
  bool retain_graph = false;
  BackwardMode mode = BackwardMode::kSmart;
  // Timeout of the whole pass; unset: the agent's default.
  std::optional<absl::Duration> timeout = {};
};

// Distributed autograd of one worker: its contexts, the recording of messages,
// and its part of backward passes. Described in docs/dist_autograd.md.
//
// Shared by the agent's DistAutogradService and objects that may outlive the
// agent: after Stop all operations return kFailedPrecondition. Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(rpc::ServiceHost& host, DistAutogradOptions options);

  // --- Contexts.

  absl::StatusOr<std::shared_ptr<Context>> CreateContext();
  absl::StatusOr<std::shared_ptr<Context>> FindContext(ContextId id) const;
  // Ends the context on this worker, and tells the workers that it reached, at
  // the latest after EndNotices::kInterval.
  void ReleaseContext(ContextId id) {
    ReleaseContext(id, ContextContainer::End::kEnded);
  }
  size_t num_contexts() const { return contexts_.size(); }
  // Number of contexts here in which a backward pass is running.
  size_t num_passes() const;

  // CurrentContext sets the context of the calling task; current_context
  // returns it, or null.
  class CurrentContext;
  std::shared_ptr<Context> current_context() const;

  // --- Backward passes.

  async::Future<void> Backward(ContextId context,
                               const std::vector<Tensor>& roots,
                               const BackwardOptions& options);

  // --- Recording of messages: rpc::MessageInterceptor.

  absl::StatusOr<std::optional<rpc::AutogradMetadata>> OnSend(
      const rpc::WorkerInfo& peer, std::span<const Tensor> tensors);
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
      std::span<Tensor> tensors);
  absl::Status OnReceiveReply(const rpc::WorkerInfo& peer,
                              const rpc::AutogradMetadata& metadata,
                              std::span<Tensor> tensors);

  // --- For DistAutogradService.

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
  // Fails `pass` at `deadline`, naming the missing gradients.
  void FailAt(async::MonotonicTime deadline,
              const std::shared_ptr<BackwardPass>& pass);

  // Makes the flagged ones of `tensors` results of a recv function.
  absl::Status RecordReceived(Context& context, const rpc::WorkerInfo& peer,
                              const rpc::AutogradMetadata& metadata,
                              std::span<Tensor> tensors);

  void ReleaseContext(ContextId id, ContextContainer::End end);
  // Ends this worker's part of a context; returns the workers to notify.
  std::vector<rpc::WorkerInfo> EndContext(ContextId id,
                                          ContextContainer::End end,
                                          const absl::Status& reason);
  void NotifyOfEnd(ContextId id, const std::vector<rpc::WorkerInfo>& workers);
  // Requests from the creators of contexts that they notify this worker of the
  // end.
  void AskForReparenting(const std::vector<std::shared_ptr<Context>>& contexts);

  const rpc::WorkerInfo self_;
  const DistAutogradOptions options_;
  const std::shared_ptr<rpc::HostHandle> host_;
  ContextContainer contexts_;
  const std::shared_ptr<EndNotices> end_notices_;
  std::atomic<uint64_t> next_pass_{1};
};

// Makes a context the one of the calling task until the end of the scope, also
// on other threads.
class Engine::CurrentContext {
 public:
  explicit CurrentContext(std::shared_ptr<Context> context);

 private:
  async::TaskLocal<std::shared_ptr<Context>>::Scope scope_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_ENGINE_H_
