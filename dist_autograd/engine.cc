#include "dist_autograd/engine.h"

#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "dist_autograd/current_context.h"
#include "dist_autograd/service_methods.h"
#include "rpc/errors/status_prefix.h"
#include "rpc/identity/worker_run.h"

namespace hawser::dist_autograd {
namespace {

// Options of messages without tensors, which are repeated as long as the worker
// lives.
rpc::MethodCallOptions ControlOptions(const DistAutogradOptions& options) {
  rpc::MethodCallOptions result;
  result.timeout = rpc::kNoTimeout;
  result.attempt_timeout = options.control_attempt_timeout;
  result.inherit_deadline = false;
  return result;
}

}  // namespace

Engine::CurrentContext::CurrentContext(std::shared_ptr<Context> context)
    : scope_(kCurrentContext, std::move(context)) {}

Engine::Engine(rpc::ServiceHost& host, DistAutogradOptions options)
    : self_(host.info()),
      options_(options),
      host_(std::make_shared<rpc::HostHandle>(host)),
      // Incarnations of one worker differ in the upper bits of the counter.
      contexts_(RunOf(self_), rpc::ToNumber(self_.incarnation) << 24,
                options.limits),
      end_notices_(std::make_shared<EndNotices>(
          &host.clock(), [handle = host_, call = ControlOptions(options)](
                             const rpc::WorkerInfo& to,
                             const v1::ReleaseContextRequest& request) {
            const rpc::HostHandle::Use use = handle->Acquire();
            if (!use) return;
            async::TaskContext::Scope detached((async::TaskContext()));
            // A lost worker does not need the message.
            (void)use->CallMethod(to, kReleaseContextMethod, request, {}, call);
          })) {}

absl::Status Engine::Start() {
  RETURN_IF_ERROR(Validate(options_.limits));
  const rpc::HostHandle::Use host = host_->Acquire();
  RETURN_IF_ERROR((host->RegisterMethod(
      kGradientMethod, [this](const rpc::MethodCall& call, auto request) {
        return HandleGradient(call, std::move(request));
      })));
  RETURN_IF_ERROR((host->RegisterMethod(
      kAbortPassMethod, [this](const rpc::MethodCall& call, auto request) {
        return HandleAbortPass(call, std::move(request));
      })));
  RETURN_IF_ERROR((host->RegisterMethod(
      kReleaseContextMethod, [this](const rpc::MethodCall& call, auto request) {
        return HandleReleaseContext(call, std::move(request));
      })));
  RETURN_IF_ERROR((host->RegisterMethod(
      kReparentContextsMethod,
      [this](const rpc::MethodCall& call, auto request) {
        return HandleReparentContexts(call, std::move(request));
      })));
  return host->RegisterMethod(
      kBackwardReferenceMethod,
      [this](const rpc::MethodCall& call, auto request) {
        return HandleBackwardReference(call, std::move(request));
      });
}

std::shared_ptr<Context> Engine::current_context() const {
  const std::shared_ptr<Context>* context = kCurrentContext.get();
  if (context == nullptr) return nullptr;
  // The context may have ended, or belong to another worker of this process.
  absl::StatusOr<std::shared_ptr<Context>> own =
      contexts_.Find((*context)->id());
  return own.ok() && *own == *context ? *context : nullptr;
}

absl::StatusOr<std::shared_ptr<Context>> Engine::CreateContext() {
  if (!host_->Acquire()) {
    return absl::FailedPreconditionError("the worker was shut down");
  }
  return contexts_.Create();
}

absl::StatusOr<std::shared_ptr<Context>> Engine::FindContext(
    ContextId id) const {
  return contexts_.Find(id);
}

void Engine::ReleaseContext(ContextId id, ContextContainer::End end) {
  NotifyOfEnd(id, EndContext(id, end,
                             absl::AbortedError(
                                 absl::StrCat("distributed autograd context ",
                                              ToString(id), " has ended"))));
}

std::vector<rpc::WorkerInfo> Engine::EndContext(ContextId id,
                                                ContextContainer::End end,
                                                const absl::Status& reason) {
  const std::shared_ptr<Context> context = contexts_.Remove(id, end);
  if (context == nullptr) return {};
  Context::Remains remains = context->Release();
  if (remains.pass != nullptr) remains.pass->Fail(reason);
  return std::move(remains.targets);
}

void Engine::NotifyOfEnd(ContextId id,
                         const std::vector<rpc::WorkerInfo>& workers) {
  const rpc::HostHandle::Use host = host_->Acquire();
  if (!host) return;
  for (const rpc::WorkerInfo& worker : workers) end_notices_->Add(id, worker);
}

async::Future<rpc::Message<v1::ReleaseContextReply>>
Engine::HandleReleaseContext(const rpc::MethodCall& call,
                             rpc::Message<v1::ReleaseContextRequest> request) {
  for (const uint64_t number : request.body.contexts()) {
    const ContextId id{number};
    // Only those from which this worker has the context end it.
    const absl::StatusOr<std::shared_ptr<Context>> context = contexts_.Find(id);
    if (context.ok() && (*context)->creator() != RunOf(call.peer) &&
        !(*context)->HasSource(RunOf(call.peer))) {
      continue;
    }
    // Another worker may say so because it has lost the creator, which may
    // still use the context.
    ReleaseContext(id, CreatorOf(id) == call.peer.id.value()
                           ? ContextContainer::End::kEnded
                           : ContextContainer::End::kCutOff);
  }
  return async::MakeReadyFuture<rpc::Message<v1::ReleaseContextReply>>(
      rpc::Message<v1::ReleaseContextReply>());
}

void Engine::OnWorkerLost(const rpc::WorkerInfo& worker,
                          const absl::Status& status) {
  contexts_.Refuse(worker);
  const rpc::WorkerRun lost = RunOf(worker);
  std::vector<std::shared_ptr<Context>> orphans;
  for (const std::shared_ptr<Context>& context : contexts_.All()) {
    if (context->creator() == lost) {
      NotifyOfEnd(
          context->id(),
          EndContext(context->id(), ContextContainer::End::kCutOff, status));
      continue;
    }
    const std::shared_ptr<BackwardPass> pass = context->pass();
    if (pass != nullptr && context->HasPeer(lost)) {
      pass->Fail(rpc::WithPrefix(
          absl::StrCat("backward pass lost worker '", worker.name, "'"),
          status));
    }
    if (context->creator() != RunOf(self_) && context->HasSource(lost)) {
      orphans.push_back(context);
    }
  }
  AskForReparenting(orphans);
}

void Engine::AskForReparenting(
    const std::vector<std::shared_ptr<Context>>& contexts) {
  const rpc::HostHandle::Use host = host_->Acquire();
  if (!host) return;
  absl::flat_hash_map<rpc::WorkerRun, v1::ReparentContextsRequest> by_creator;
  for (const std::shared_ptr<Context>& context : contexts) {
    by_creator[context->creator()].add_contexts(ToNumber(context->id()));
  }
  async::TaskContext::Scope detached((async::TaskContext()));
  for (const auto& [creator, request] : by_creator) {
    host->CallMethod(rpc::WorkerInfo{"", creator.id, creator.incarnation, ""},
                     kReparentContextsMethod, request, {},
                     ControlOptions(options_))
        .OnReady(
            [self = shared_from_this(), request = request](
                const absl::StatusOr<rpc::Message<v1::ReparentContextsReply>>&
                    reply) {
              // The call is retried as long as the creator lives. On failure
              // the creator is lost or never existed, or this worker could not
              // find it, and would not hear of the end.
              const auto& ended =
                  reply.ok() ? reply->body.ended() : request.contexts();
              const auto end = reply.ok() ? ContextContainer::End::kEnded
                                          : ContextContainer::End::kCutOff;
              for (const uint64_t id : ended) {
                self->ReleaseContext(ContextId{id}, end);
              }
            });
  }
}

async::Future<rpc::Message<v1::ReparentContextsReply>>
Engine::HandleReparentContexts(
    const rpc::MethodCall& call,
    rpc::Message<v1::ReparentContextsRequest> request) {
  rpc::Message<v1::ReparentContextsReply> reply;
  for (const uint64_t id : request.body.contexts()) {
    absl::StatusOr<std::shared_ptr<Context>> context =
        contexts_.Find(ContextId{id});
    if (!context.ok() || !(*context)->Reparent(call.peer)) {
      reply.body.add_ended(id);
    }
  }
  return async::MakeReadyFuture<rpc::Message<v1::ReparentContextsReply>>(
      std::move(reply));
}

void Engine::Stop() {
  host_->Revoke();
  for (const std::shared_ptr<Context>& context : contexts_.All()) {
    EndContext(context->id(), ContextContainer::End::kCutOff,
               absl::CancelledError("the worker was shut down"));
  }
}

}  // namespace hawser::dist_autograd
