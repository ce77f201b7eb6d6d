#include "rpc/agent/outbound/retrying_call.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {
namespace {

constexpr absl::Duration kMaxBackoff = absl::Seconds(2);

}  // namespace

async::Future<RawMessage> RetryingCall::Begin() {
  async::Future<RawMessage> future = promise_.future();
  future.SetWaitPoller(call_);
  promise_.OnCancel([call = call_] { call->Cancel(); });
  Attempt();
  return future;
}

void RetryingCall::Abandon() {
  End(WithErrorDetail(
      absl::CancelledError(absl::StrCat(
          "the call of '", options_.definition->name,
          "' was waiting to be tried again when this agent was shut down")),
      peer_->info(), /*maybe_applied=*/true));
}

void RetryingCall::FollowRestart() {
  if (!options_.call_options.follow_restarts) return;
  absl::StatusOr<std::shared_ptr<Peer>> found =
      options_.peers->FindPeer(peer_->info().name, options_.deadline);
  if (found.ok()) peer_ = *std::move(found);
}

void RetryingCall::Attempt() {
  if (attempted_ || peer_->lost()) FollowRestart();
  const MethodDefinition& definition = *options_.definition;
  const MethodCallOptions& call_options = options_.call_options;
  OutgoingRequest request;
  request.call = call_;
  request.peer = peer_;
  request.description = absl::StrCat("method '", definition.name, "'");
  request.path = definition.path;
  request.body = options_.request.body;
  request.tensors = options_.request.tensors;
  request.intercept_messages = call_options.intercept_messages;
  request.in_place_reply = call_options.in_place_reply;
  request.at_most_once = definition.at_most_once;
  request.attempted = std::exchange(attempted_, true);
  request.inherit_cancellation = call_options.inherit_deadline;
  request.deadline = options_.deadline;
  if (call_options.attempt_timeout.has_value() && !definition.at_most_once) {
    request.deadline = std::min(options_.deadline,
                                async::AddDelay(options_.state->clock().Now(),
                                                *call_options.attempt_timeout));
  }
  request.trace = options_.trace;
  request.observation = options_.observation;
  const bool sent = options_.sender->Send(
      std::move(request),
      [self = shared_from_this()](absl::StatusOr<ReceivedMessage> reply) {
        self->OnReply(std::move(reply));
      });
  if (sent) options_.peers->Watch(peer_);
}

void RetryingCall::OnReply(absl::StatusOr<ReceivedMessage> reply) {
  if (reply.ok()) {
    End(RawMessage{std::string(reply->message.body()),
                   std::move(reply->tensors)});
    return;
  }
  OnFailure(std::move(reply).status());
}

void RetryingCall::OnFailure(absl::Status status) {
  AgentState& state = *options_.state;
  const async::MonotonicTime retry_time =
      async::AddDelay(state.clock().Now(), backoff_);
  if (!MayRetry(status) || retry_time >= options_.deadline) {
    End(std::move(status));
    return;
  }
  backoff_ = std::min(2 * backoff_, kMaxBackoff);
  state.clock().CallAt(
      retry_time, [self = shared_from_this(), state = options_.state] {
        Gate::Entry entry(&state->gate());
        if (!entry) return;
        state->Post(state->executor(), [self] { self->Attempt(); });
      });
}

bool RetryingCall::MayRetry(const absl::Status& status) const {
  const bool follows = options_.call_options.follow_restarts;
  if (options_.definition->at_most_once || call_->cancelled() ||
      !options_.state->CheckRunning().ok()) {
    return false;
  }
  if (follows && ReachedSuccessor(status)) return true;
  if (peer_->lost() && !follows) return false;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool RetryingCall::ReachedSuccessor(const absl::Status& status) const {
  if (!absl::IsFailedPrecondition(status)) return false;
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  return detail.has_value() && !detail->maybe_applied &&
         detail->worker == peer_->info().name &&
         detail->incarnation != Incarnation{} &&
         detail->incarnation != peer_->info().incarnation;
}

void RetryingCall::End(absl::StatusOr<RawMessage> result) {
  if (ended_.exchange(true)) return;
  if (options_.observation != nullptr) {
    options_.observation->End(result.status());
  }
  promise_.Set(std::move(result));
  options_.on_end(this);
}

}  // namespace hawser::rpc
