#include "rpc/agent/inbound/inbound_pipeline.h"

#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

// Decodes the tensors of `call`, and restores the context that its caller
// recorded.
absl::StatusOr<std::pair<std::vector<tensor::Tensor>, async::TaskContext>>
ReadTensors(AgentState& state, InboundCall& call) {
  std::vector<bool> requires_grad;
  ASSIGN_OR_RETURN(
      std::vector<tensor::Tensor> tensors,
      call.message->ReadTensors(state.transfers(), &requires_grad));
  async::TaskContext context;
  if (state.interceptor() != nullptr && call.autograd.has_value()) {
    call.autograd->requires_grad = std::move(requires_grad);
    ASSIGN_OR_RETURN(context, state.interceptor()->OnReceiveRequest(
                                  call.source, *call.autograd, tensors));
  }
  return std::pair(std::move(tensors), std::move(context));
}

}  // namespace

InboundPipeline::InboundPipeline(std::shared_ptr<AgentState> state,
                                 SenderDirectory* senders,
                                 const ReplySender* replies,
                                 FunctionRunner* runner)
    : state_(std::move(state)),
      senders_(*senders),
      replies_(*replies),
      runner_(*runner),
      admission_(state_, senders) {}

bool InboundPipeline::IsDuplicate(const Endpoint& endpoint,
                                  const InboundCall& call) {
  return endpoint.definition().at_most_once && call.call_id != 0 &&
         !duplicates_.FirstSeen(call.source, call.call_id);
}

// A copy of a call that ran must not be answered as if the call had not run,
// and a copy of a call that was refused must not run.
void InboundPipeline::Refuse(const Endpoint& endpoint, InboundCall& call,
                             absl::Status status) {
  if (call.unconfirmed && !GetErrorDetail(status).has_value()) {
    // Another copy may run once the sender is known.
    SetErrorDetail({.worker = state_->self().name,
                    .incarnation = state_->self().incarnation,
                    .maybe_applied = call.call_id != 0},
                   status);
  }
  if (!GetErrorDetail(status).has_value() && IsDuplicate(endpoint, call)) {
    call.incoming().Discard();
    return;
  }
  replies_.Fail(call, std::move(status));
}

Admission::Target InboundPipeline::TargetOf(const Endpoint& endpoint) {
  return {.begins_work = endpoint.definition().at_most_once,
          .for_left_workers = endpoint.for_left_workers(),
          .quota = endpoint.quota()};
}

void InboundPipeline::OnCall(const Endpoint& endpoint,
                             std::unique_ptr<IncomingCall> incoming) {
  Gate::Entry entry(&state_->gate());
  if (!entry) return;
  AgentState::InsideScope inside(state_.get());
  auto call = std::make_shared<InboundCall>(state_, std::move(incoming));
  absl::Status status = admission_.Admit(*call, TargetOf(endpoint));
  if (!status.ok()) {
    Refuse(endpoint, *call, std::move(status));
  } else if (call->unconfirmed && !endpoint.for_unconfirmed_senders()) {
    AwaitSender(endpoint, call);
  } else {
    Check(endpoint, call);
  }
}

void InboundPipeline::AwaitSender(const Endpoint& endpoint,
                                  const std::shared_ptr<InboundCall>& call) {
  senders_.Confirm(call->source, [this, &endpoint,
                                  call](absl::Status confirmed) {
    state_->Post(state_->executor(), [this, &endpoint, call,
                                      status = std::move(confirmed)]() mutable {
      if (status.ok()) {
        status = admission_.AdmitConfirmed(*call, TargetOf(endpoint));
      }
      if (status.ok()) {
        Check(endpoint, call);
      } else {
        Refuse(endpoint, *call, std::move(status));
      }
    });
  });
}

void InboundPipeline::Check(const Endpoint& endpoint,
                            const std::shared_ptr<InboundCall>& call) {
  if (absl::Status status = endpoint.Check(*call); !status.ok()) {
    Refuse(endpoint, *call, std::move(status));
    return;
  }
  Accept(endpoint, call);
}

void InboundPipeline::Accept(const Endpoint& endpoint,
                             const std::shared_ptr<InboundCall>& call) {
  if (IsDuplicate(endpoint, *call)) {
    call->incoming().Discard();
    return;
  }
  const RegisteredFunction* const function = call->function;
  call->observation = CallObservation::Begin(
      state_->observers(),
      {.side = CallStart::Side::kServer,
       .method = endpoint.definition().name,
       .function = function == nullptr ? std::string_view() : function->name(),
       .peer = call->source,
       .trace = &call->trace});
  if (call->observation != nullptr) {
    call->observation->AddRequest(call->request_bytes);
  }
  const RunOn& run_on = endpoint.run_on(*call);
  if (run_on.kind() == RunOn::Kind::kInline && endpoint.MayRunInline(*call)) {
    Run(endpoint, call);
    return;
  }
  runner_.RunOrPost({.run_on = run_on,
                     .run_time = endpoint.run_time(*call),
                     .request_bytes = call->request_bytes,
                     .more_waiting = call->incoming().more_waiting()},
                    [this, &endpoint, call] { Run(endpoint, call); });
}

void InboundPipeline::Run(const Endpoint& endpoint,
                          const std::shared_ptr<InboundCall>& call) {
  if (absl::Status status = endpoint.CheckBeforeRun(*call); !status.ok()) {
    replies_.Fail(*call, std::move(status));
    return;
  }
  std::vector<tensor::Tensor> tensors;
  async::TaskContext context;
  if (!endpoint.reads_tensors()) {
    auto read = ReadTensors(*state_, *call);
    if (!read.ok()) {
      replies_.Fail(*call, std::move(read).status());
      return;
    }
    std::tie(tensors, context) = *std::move(read);
  }
  async::TaskContext::Scope scope(std::move(context));
  CurrentCall::Scope current(
      CurrentCall(state_->agent(), call->source, call->incoming().deadline(),
                  call->incoming().cancellation(), call->trace));
  endpoint.Run(call, std::move(tensors));
}

}  // namespace hawser::rpc
