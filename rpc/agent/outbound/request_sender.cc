#include "rpc/agent/outbound/request_sender.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/busy_timer.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "async/thread_pool.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/not_sent.h"

namespace hawser::rpc {
namespace {

// A reply with more tensor bytes is copied by the caller, if it waits for it,
// or else on the executor, to free the transport's thread.
constexpr uint64_t kMaxInlineReadBytes = 64 << 10;

// Usual size of the header fields that differ between requests.
constexpr size_t kCallFieldsBytes = 64;

absl::Status WithCode(absl::StatusCode code, const std::string& message,
                      const absl::Status& like) {
  absl::Status status(code, message);
  like.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    status.SetPayload(url, payload);
  });
  return status;
}

// Error of a reply that arrived but could not be read: it is malformed, or its
// bytes were in the memory of a peer that has ended.
absl::Status UnreadReply(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return status;
  return WithCode(absl::StatusCode::kInternal, std::string(status.message()),
                  status);
}

}  // namespace

absl::StatusOr<Payload> RequestSender::Encode(OutgoingRequest& request) {
  OutgoingMessage message;
  std::optional<AutogradMetadata> autograd;
  MessageInterceptor* const interceptor = state_->interceptor();
  if (request.intercept_messages && interceptor != nullptr) {
    RETURN_IF_ERROR(CheckSendable(request.tensors));
    ASSIGN_OR_RETURN(
        autograd, interceptor->OnSend(request.peer->info(), request.tensors));
    if (autograd.has_value()) {
      message.requires_grad = std::move(autograd->requires_grad);
    }
  }
  const std::string& header = request.peer->header();
  message.header.reserve(header.size() + kCallFieldsBytes);
  message.header = header;
  AppendCallFields(
      request.at_most_once
          ? last_call_id_.fetch_add(1, std::memory_order_relaxed) + 1
          : 0,
      autograd, request.trace, message.header);
  message.body = std::move(request.body);
  message.tensors = std::move(request.tensors);
  return EncodeMessage(std::move(message), state_->transfers());
}

bool RequestSender::Send(OutgoingRequest request, Done done) {
  // Sending is not work of the function that makes the call.
  async::BusyTimer::Pause pause;
  const WorkerInfo& worker = request.peer->info();
  if (request.at_most_once) request.peer->BeginCall();
  const auto fail = [&](absl::Status status) {
    if (request.at_most_once) request.peer->EndCall();
    std::move(done)(
        WithErrorDetail(std::move(status), worker, request.attempted));
    return false;
  };
  if (request.deadline <= state_->clock().Now()) {
    return fail(absl::DeadlineExceededError(
        absl::StrCat("the deadline of ", request.description, " at ",
                     ToString(worker), " had passed before it was sent")));
  }
  // It may have been cancelled between two attempts, or with its inbound call.
  const CurrentCall* const current =
      request.inherit_cancellation ? CurrentCall::Get() : nullptr;
  if (request.call->cancelled() ||
      (current != nullptr && current->cancelled())) {
    return fail(absl::CancelledError(
        absl::StrCat(request.description, " at ", ToString(worker),
                     " was cancelled by its caller before it was sent")));
  }
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      request.control ? request.peer->heartbeat_connection()
                      : request.peer->connection();
  if (!connection.ok()) return fail(connection.status());
  absl::StatusOr<Payload> payload = Encode(request);
  if (!payload.ok()) return fail(payload.status());
  if (!request.control) request.peer->counters()->AddRequest(payload->size());
  if (request.observation != nullptr) {
    request.observation->AddRequest(payload->size());
  }
  if (current != nullptr) {
    request.call->FollowParent(current->cancellation());
  }
  const std::shared_ptr<OutgoingCall> call = request.call;
  const uint64_t attempt = call->BeginAttempt();
  const std::string_view path = request.path;
  const async::MonotonicTime deadline = request.deadline;
  auto on_reply = [this, attempt, request = std::move(request),
                   context = async::TaskContext::Capture(),
                   done =
                       std::move(done)](absl::StatusOr<Payload> reply) mutable {
    AgentState::InsideScope inside(state_.get());
    async::TaskContext::Scope scope(std::move(context));
    request.call->EndAttempt(attempt);
    if (!request.control) request.peer->counters()->AddEnd();
    OnReply(request, std::move(reply), std::move(done));
  };
  call->SetAttempt(
      attempt, *connection,
      (*connection)
          ->Call(path, *std::move(payload), deadline, std::move(on_reply)));
  return true;
}

void RequestSender::OnReply(const OutgoingRequest& request,
                            absl::StatusOr<Payload> reply, Done done) {
  if (!reply.ok()) {
    End(request, CallError(request, std::move(reply).status()),
        std::move(done));
    return;
  }
  request.peer->SetAnswered(state_->clock().Now());
  if (!request.control) request.peer->counters()->AddReply(reply->size());
  if (request.observation != nullptr) {
    request.observation->AddReply(reply->size());
  }
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(*std::move(reply));
  if (!message.ok()) {
    End(request, CallError(request, UnreadReply(message.status())),
        std::move(done));
    return;
  }
  // Callbacks of the reply may block.
  if (request.call->IsAwaitedHere() ||
      (message->tensor_bytes() <= kMaxInlineReadBytes &&
       !async::ThreadPool::IsNearlyExhausted())) {
    End(request, ReadReply(request, *std::move(message)), std::move(done));
    return;
  }
  state_->Post(
      state_->executor(), [this, request, message = *std::move(message),
                           done = std::move(done)]() mutable {
        End(request, ReadReply(request, std::move(message)), std::move(done));
      });
}

// Ends the call at the peer only after the reply was read: a peer that leaves
// frees the memory of its replies once its calls have ended.
void RequestSender::End(const OutgoingRequest& request,
                        absl::StatusOr<ReceivedMessage> received, Done done) {
  if (request.at_most_once) request.peer->EndCall();
  std::move(done)(std::move(received));
}

absl::StatusOr<ReceivedMessage> RequestSender::ReadReply(
    const OutgoingRequest& request, IncomingMessage message) {
  MessageInterceptor* const interceptor = state_->interceptor();
  const auto read = [&]() -> absl::StatusOr<ReceivedMessage> {
    std::vector<bool> requires_grad;
    ASSIGN_OR_RETURN(std::vector<tensor::Tensor> tensors,
                     message.ReadTensors(state_->transfers(), &requires_grad,
                                         request.in_place_reply));
    if (request.intercept_messages && interceptor != nullptr) {
      ASSIGN_OR_RETURN(std::optional<AutogradMetadata> autograd,
                       message.ParseReplyHeader());
      if (autograd.has_value()) {
        autograd->requires_grad = std::move(requires_grad);
        RETURN_IF_ERROR(interceptor->OnReceiveReply(request.peer->info(),
                                                    *autograd, tensors));
      }
    }
    return ReceivedMessage{std::move(message), std::move(tensors)};
  };
  absl::StatusOr<ReceivedMessage> received = read();
  if (received.ok()) return received;
  return CallError(request, UnreadReply(received.status()));
}

absl::Status RequestSender::CallError(const OutgoingRequest& request,
                                      absl::Status status) const {
  if (!request.control) request.peer->counters()->AddFailure();
  // An error of the callee is returned unchanged.
  if (GetErrorDetail(status).has_value()) return status;
  const WorkerInfo& worker = request.peer->info();
  const std::string target =
      absl::StrCat(request.description, " at ", ToString(worker));
  absl::StatusCode code = status.code();
  std::string message;
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
      message = absl::StrCat(target, " did not answer in time");
      break;
    case absl::StatusCode::kCancelled:
      if (state_->phase() >= AgentState::Phase::kStopping) {
        message =
            absl::StrCat(target, " was cancelled: this agent was shut down");
      } else if (request.call->cancelled()) {
        message = absl::StrCat(target, " was cancelled by its caller");
      } else {
        // The peer's transport was shut down during the call.
        code = absl::StatusCode::kUnavailable;
        message = absl::StrCat(target, " was cut off: ", status.message());
      }
      break;
    default:
      message = absl::StrCat(target, ": ", status.message());
      break;
  }
  absl::Status error = WithCode(code, message, status);
  // Of the errors of a transport, only these certainly precede the handler.
  const bool maybe_applied = code != absl::StatusCode::kUnimplemented &&
                             (request.attempted || !IsNotSent(status));
  ClearNotSent(error);
  SetErrorDetail({.worker = worker.name,
                  .incarnation = worker.incarnation,
                  .maybe_applied = maybe_applied},
                 error);
  return error;
}

}  // namespace hawser::rpc
