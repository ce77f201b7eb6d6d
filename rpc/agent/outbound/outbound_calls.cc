#include "rpc/agent/outbound/outbound_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/outbound/call_deadline.h"
#include "rpc/agent/state/worker_methods.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_name.h"
#include "rpc/wire/call_body.h"

namespace hawser::rpc {
namespace {

constexpr char kCallPath[] = "/hawser.v1.WorkerService/Call";

}  // namespace

OutboundCalls::OutboundCalls(std::shared_ptr<AgentState> state,
                             RequestSender* sender, PeerFinder* peers)
    : state_(std::move(state)), sender_(sender), peers_(peers) {}

TraceContext OutboundCalls::CurrentTrace() {
  const CurrentCall* const current = CurrentCall::Get();
  return current == nullptr ? TraceContext() : current->trace();
}

std::shared_ptr<CallObservation> OutboundCalls::Observe(
    std::string_view method, std::string_view function, const Peer& peer,
    TraceContext& trace) const {
  return CallObservation::Begin(state_->observers(),
                                {.side = CallStart::Side::kClient,
                                 .method = method,
                                 .function = function,
                                 .peer = peer.info(),
                                 .trace = &trace});
}

absl::StatusOr<OutgoingRequest> OutboundCalls::PrepareFunctionCall(
    const std::shared_ptr<OutgoingCall>& call, const Destination& to,
    const CallOptions& options, std::string_view function,
    std::string_view signature,
    absl::FunctionRef<absl::Status(Encoder&)> encode) {
  OutgoingRequest request;
  RETURN_IF_ERROR(state_->CheckMayCall());
  ASSIGN_OR_RETURN(request.deadline, CallDeadline(*state_, options.timeout,
                                                  /*inherit=*/true));
  ASSIGN_OR_RETURN(request.peer, peers_->FindPeer(to, request.deadline));
  const WorkerInfo& worker = request.peer->info();
  Encoder encoder(state_->agent(), &worker);
  absl::Status status = CheckFunctionName(function, signature);
  if (status.ok()) status = encode(encoder);
  if (!status.ok()) {
    return WithErrorDetail(std::move(status), worker, /*maybe_applied=*/false);
  }
  request.call = call;
  request.description = absl::StrCat(
      "function '", absl::string_view(function.data(), function.size()), "'");
  request.path = kCallPath;
  request.body = EncodeCallBody({.function = function,
                                 .signature = signature,
                                 .arguments = encoder.TakeValues()});
  request.tensors = encoder.TakeTensors();
  request.intercept_messages = true;
  request.at_most_once = true;
  request.trace = CurrentTrace();
  request.observation =
      Observe(kCallMethod.name(), function, *request.peer, request.trace);
  return request;
}

void OutboundCalls::CallFunction(
    const std::shared_ptr<OutgoingCall>& call, const Destination& to,
    const CallOptions& options, std::string_view function,
    std::string_view signature,
    absl::FunctionRef<absl::Status(Encoder&)> encode, FunctionReply done) {
  AgentState::InsideScope inside(state_.get());
  Gate::Entry entry(&state_->call_gate());
  absl::StatusOr<OutgoingRequest> request =
      entry
          ? PrepareFunctionCall(call, to, options, function, signature, encode)
          : state_->CallGateClosed();
  if (!request.ok()) {
    std::move(done)(WithErrorDetail(std::move(request).status(), to.worker(),
                                    /*maybe_applied=*/false));
    return;
  }
  state_->BeginOutboundCall();
  const std::shared_ptr<Peer> peer = request->peer;
  auto on_reply = [this, peer, observation = request->observation,
                   done = std::move(done)](
                      absl::StatusOr<ReceivedMessage> reply) mutable {
    absl::StatusOr<std::string_view> results =
        reply.ok() ? ParseCallResults(reply->message.body()) : reply.status();
    if (!results.ok()) {
      results = WithErrorDetail(std::move(results).status(), peer->info(),
                                /*maybe_applied=*/true);
    }
    if (observation != nullptr) observation->End(results.status());
    if (results.ok()) {
      Decoder decoder(state_->agent(), &peer->info(), *results,
                      std::move(reply->tensors));
      std::move(done)(&decoder);
    } else {
      std::move(done)(std::move(results).status());
    }
    state_->outbound_calls().End();
  };
  if (sender_->Send(*std::move(request), std::move(on_reply))) {
    peers_->Watch(peer);
  }
}

absl::StatusOr<std::shared_ptr<RetryingCall>> OutboundCalls::PrepareMethodCall(
    const Destination& to, const MethodName& method, RawMessage request,
    const MethodCallOptions& options) {
  ASSIGN_OR_RETURN(const MethodDefinition* const definition, method.Resolve());
  RETURN_IF_ERROR(state_->CheckMayCall());
  ASSIGN_OR_RETURN(
      const async::MonotonicTime deadline,
      CallDeadline(*state_, options.timeout, options.inherit_deadline));
  ASSIGN_OR_RETURN(std::shared_ptr<Peer> peer, peers_->FindPeer(to, deadline));
  TraceContext trace = CurrentTrace();
  std::shared_ptr<CallObservation> observation =
      Observe(definition->name, "", *peer, trace);
  return std::make_shared<RetryingCall>(RetryingCall::Options{
      .state = state_,
      .sender = sender_,
      .peers = peers_,
      .definition = definition,
      .request = std::move(request),
      .peer = std::move(peer),
      .deadline = deadline,
      .call_options = options,
      .trace = std::move(trace),
      .observation = std::move(observation),
      .on_end = [this](RetryingCall* ended) { Remove(ended); }});
}

async::Future<RawMessage> OutboundCalls::CallMethod(
    const Destination& to, const MethodName& method, RawMessage request,
    const MethodCallOptions& options) {
  AgentState::InsideScope inside(state_.get());
  Gate::Entry entry(&state_->call_gate());
  absl::StatusOr<std::shared_ptr<RetryingCall>> call =
      entry ? PrepareMethodCall(to, method, std::move(request), options)
            : state_->CallGateClosed();
  if (!call.ok()) {
    return async::MakeReadyFuture<RawMessage>(
        WithErrorDetail(std::move(call).status(), to.worker(),
                        /*maybe_applied=*/false));
  }
  {
    async::MutexLock lock(&mutex_);
    retrying_.emplace(call->get(), *call);
  }
  state_->BeginOutboundCall();
  return (*call)->Begin();
}

void OutboundCalls::Remove(RetryingCall* call) {
  std::shared_ptr<RetryingCall> removed;
  {
    async::MutexLock lock(&mutex_);
    const auto found = retrying_.find(call);
    if (found != retrying_.end()) {
      removed = std::move(found->second);
      retrying_.erase(found);
    }
  }
  state_->outbound_calls().End();
}

void OutboundCalls::AbandonRetries() {
  absl::flat_hash_map<RetryingCall*, std::shared_ptr<RetryingCall>> calls;
  {
    async::MutexLock lock(&mutex_);
    calls = retrying_;
  }
  for (const auto& [unused, call] : calls) call->Abandon();
}

}  // namespace hawser::rpc
