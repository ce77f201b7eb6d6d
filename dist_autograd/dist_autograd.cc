#include "dist_autograd/dist_autograd.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/service_methods.h"
#include "rpc/agent/service_host.h"
#include "rref/wire_ids.h"

namespace hawser::dist_autograd {

absl::StatusOr<std::unique_ptr<ContextScope>> ContextScope::Open(
    rpc::Agent& agent) {
  ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine, EngineOf(agent));
  if (const std::shared_ptr<Context> open = engine->current_context()) {
    return absl::FailedPreconditionError(
        absl::StrCat("distributed autograd context ", ToString(open->id()),
                     " is open here: contexts cannot be nested"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Context> context, engine->CreateContext());
  return std::unique_ptr<ContextScope>(
      new ContextScope(std::move(engine), std::move(context)));
}

ContextScope::ContextScope(std::shared_ptr<Engine> engine,
                           std::shared_ptr<Context> context)
    : engine_(std::move(engine)),
      context_(std::move(context)),
      current_(context_) {}

ContextScope::~ContextScope() { engine_->ReleaseContext(context_->id()); }

async::Future<void> BackwardAsync(rpc::Agent& agent, ContextId context,
                                  const std::vector<Tensor>& roots,
                                  const BackwardOptions& options) {
  absl::StatusOr<std::shared_ptr<Engine>> engine = EngineOf(agent);
  if (!engine.ok()) return async::MakeReadyFuture<void>(engine.status());
  return (*engine)->Backward(context, roots, options);
}

absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const std::vector<Tensor>& roots,
                      const BackwardOptions& options) {
  return BackwardAsync(agent, context, roots, options).Wait();
}

absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const rref::RRef<Tensor>& root,
                      const BackwardOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Engine> engine, EngineOf(agent));
  if (root.is_owner()) {
    ASSIGN_OR_RETURN(const Tensor value, root.ToHere(options.timeout));
    return engine->Backward(context, {value}, options).Wait();
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Context> here,
                   engine->FindContext(context));
  if (!here->AddTarget(root.owner())) {
    return absl::NotFoundError(absl::StrCat("distributed autograd context ",
                                            ToString(context), " has ended"));
  }
  v1::BackwardReferenceRequest request;
  *request.mutable_rref() = rref::ToProto(root.id());
  request.set_context(ToNumber(context));
  request.set_retain_graph(options.retain_graph);
  request.set_smart(options.mode == BackwardMode::kSmart);
  rpc::MethodCallOptions call_options;
  call_options.timeout = options.timeout;
  return agent.host()
      .CallMethod(root.owner(), kBackwardReferenceMethod, request, {},
                  call_options)
      .Wait()
      .status();
}

absl::StatusOr<Gradients> GetGradients(rpc::Agent& agent, ContextId context) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Engine> engine, EngineOf(agent));
  ASSIGN_OR_RETURN(const std::shared_ptr<Context> found,
                   engine->FindContext(context));
  return found->gradients();
}

}  // namespace hawser::dist_autograd
