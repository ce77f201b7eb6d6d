#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/outgoing_call.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);

}  // namespace

// One method call with all its attempts. Keeps itself alive through what it
// waits for.
class Agent::Impl::RetryingCall
    : public std::enable_shared_from_this<RetryingCall> {
 public:
  RetryingCall(Impl* impl, const MethodDefinition* definition,
               RawMessage request, const MethodCallOptions& options)
      : impl_(*impl),
        definition_(*definition),
        request_(std::move(request)),
        options_(options) {}

  async::Future<RawMessage> future() const { return promise_.future(); }
  void AwaitReply() { call_->AwaitReply(); }

  void Begin(const Destination& to) {
    promise_.OnCancel([call = call_] { call->Cancel(); });
    InsideScope inside(&impl_);
    Gate::Entry entry(&impl_.call_gate_);
    absl::Status status = Prepare(to);
    if (!entry) status = impl_.CallGateClosed();
    if (!status.ok()) {
      promise_.Set(WithErrorDetail(std::move(status), impl_.WhatIsSaid(to),
                                   /*maybe_applied=*/false));
      return;
    }
    {
      async::MutexLock lock(&impl_.mutex_);
      impl_.retrying_calls_.insert(shared_from_this());
    }
    impl_.BeginClientCall();
    Attempt();
  }

  // The agent stops: no attempt is under way.
  void Abandon() {
    End(WithErrorDetail(
        absl::CancelledError(absl::StrCat("the call of '", definition_.name,
                                          "' was waiting to be tried again "
                                          "when this agent was shut down")),
        peer_->info(), /*maybe_applied=*/true));
  }

 private:
  absl::Status Prepare(const Destination& to) {
    RETURN_IF_ERROR(impl_.CheckMayCall());
    ASSIGN_OR_RETURN(deadline_, impl_.DeadlineOf(options_.timeout,
                                                 options_.inherit_deadline));
    ASSIGN_OR_RETURN(peer_, impl_.FindPeer(to, deadline_));
    return absl::OkStatus();
  }

  void Attempt() {
    OutgoingRequest request;
    request.call = call_;
    request.peer = peer_;
    request.what = absl::StrCat("method '", definition_.name, "'");
    request.path = definition_.path;
    request.body = request_.body;
    request.tensors = request_.tensors;
    request.intercept_messages = options_.intercept_messages;
    request.at_most_once = definition_.at_most_once;
    request.attempted = std::exchange(attempted_, true);
    request.inherit_cancellation = options_.inherit_deadline;
    request.deadline = deadline_;
    if (options_.attempt_timeout.has_value() && !definition_.at_most_once) {
      request.deadline = std::min(
          deadline_,
          async::AddDelay(impl_.clock_->Now(), *options_.attempt_timeout));
    }
    impl_.Send(std::move(request), [self = shared_from_this()](
                                       absl::StatusOr<ReceivedMessage> reply) {
      self->OnReply(std::move(reply));
    });
  }

  void OnReply(absl::StatusOr<ReceivedMessage> reply) {
    if (reply.ok()) {
      End(RawMessage{std::string(reply->message.body()),
                     std::move(reply->tensors)});
      return;
    }
    const async::MonotonicTime retry_time =
        async::AddDelay(impl_.clock_->Now(), backoff_);
    if (!MayRetry(reply.status()) || retry_time >= deadline_) {
      End(std::move(reply).status());
      return;
    }
    backoff_ = std::min(2 * backoff_, kMaxBackoff);
    impl_.clock_->CallAt(retry_time, [self = shared_from_this(),
                                      shared = impl_.shared_]() mutable {
      Gate::Entry entry(&shared->gate);
      if (!entry) return;
      Impl& impl = self->impl_;
      impl.Post(*impl.executor_, [self = std::move(self)] { self->Attempt(); });
    });
  }

  bool MayRetry(const absl::Status& status) const {
    if (definition_.at_most_once || call_->cancelled() || peer_->lost() ||
        !impl_.CheckRunning().ok()) {
      return false;
    }
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  }

  void End(absl::StatusOr<RawMessage> result) {
    if (ended_.exchange(true)) return;
    promise_.Set(std::move(result));
    {
      async::MutexLock lock(&impl_.mutex_);
      impl_.retrying_calls_.erase(shared_from_this());
    }
    impl_.client_calls_.End();
  }

  Impl& impl_;
  const MethodDefinition& definition_;
  const RawMessage request_;
  const MethodCallOptions options_;
  const CallHandle call_ = std::make_shared<OutgoingCall>();
  async::Promise<RawMessage> promise_;
  std::shared_ptr<Peer> peer_;
  async::MonotonicTime deadline_;
  std::atomic<bool> ended_{false};
  // Used by one attempt at a time.
  bool attempted_ = false;
  absl::Duration backoff_ = kFirstBackoff;
};

absl::Status Agent::Impl::RegisterRawMethod(const MethodName& method,
                                            RawMethodHandler handler,
                                            MethodOptions options) {
  if (serving_) {
    return absl::FailedPreconditionError(
        absl::StrCat("method '", std::string(method.name()),
                     "' must be registered in Service::Start"));
  }
  return methods_.Add(method, std::move(handler), std::move(options));
}

async::Future<RawMessage> Agent::Impl::CallRawMethod(
    const Destination& to, const MethodName& method, RawMessage request,
    const MethodCallOptions& options) {
  const absl::StatusOr<const MethodDefinition*> definition = method.Resolve();
  if (!definition.ok()) {
    return async::MakeReadyFuture<RawMessage>(definition.status());
  }
  auto call = std::make_shared<RetryingCall>(this, *definition,
                                             std::move(request), options);
  async::Future<RawMessage> future = call->future();
  call->Begin(to);
  if (options.await && !future.ready()) call->AwaitReply();
  return future;
}

void Agent::Impl::AbandonRetryingCalls() {
  absl::flat_hash_set<std::shared_ptr<RetryingCall>> calls;
  {
    async::MutexLock lock(&mutex_);
    calls = retrying_calls_;
  }
  for (const auto& call : calls) call->Abandon();
}

}  // namespace hawser::rpc
