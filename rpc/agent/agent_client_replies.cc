#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/thread_pool.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/outgoing_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/not_sent.h"

namespace hawser::rpc {
namespace {

// A reply with more tensor bytes is copied on the executor, so that the
// transport's thread can go on.
constexpr uint64_t kMaxInlineReadBytes = 64 << 10;

absl::Status WithCode(absl::StatusCode code, const std::string& message,
                      const absl::Status& like) {
  absl::Status status(code, message);
  like.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    status.SetPayload(url, payload);
  });
  return status;
}

// The error of a reply that came and could not be read: it is malformed, or the
// peer is gone that had its bytes.
absl::Status UnreadReply(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return status;
  return WithCode(absl::StatusCode::kInternal, std::string(status.message()),
                  status);
}

}  // namespace

// In the transport's thread, or, where there is much to copy, on the executor.
void Agent::Impl::OnReply(const OutgoingRequest& request,
                          absl::StatusOr<Payload> reply,
                          ReceivedCallback done) {
  if (!reply.ok()) {
    End(request, CallError(request, std::move(reply).status()),
        std::move(done));
    return;
  }
  request.peer->SetAnswered(clock_->Now());
  if (!request.heartbeat) request.peer->counters()->AddReply(reply->size());
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(*std::move(reply));
  if (!message.ok()) {
    End(request, CallError(request, UnreadReply(message.status())),
        std::move(done));
    return;
  }
  // What hangs on the reply may block.
  if (message->tensor_bytes() <= kMaxInlineReadBytes &&
      !async::ThreadPool::IsNearlyExhausted()) {
    End(request, ReadReply(request, *std::move(message)), std::move(done));
    return;
  }
  Post(*executor_, [this, request, message = *std::move(message),
                    done = std::move(done)]() mutable {
    End(request, ReadReply(request, std::move(message)), std::move(done));
  });
}

// Not before the reply was read: a peer that leaves goes once its calls have
// ended, and takes back what lies in its memory.
void Agent::Impl::End(const OutgoingRequest& request,
                      absl::StatusOr<ReceivedMessage> received,
                      ReceivedCallback done) {
  if (request.at_most_once) request.peer->EndCall();
  std::move(done)(std::move(received));
}

absl::StatusOr<Agent::Impl::ReceivedMessage> Agent::Impl::ReadReply(
    const OutgoingRequest& request, IncomingMessage message) {
  const auto read = [&]() -> absl::StatusOr<ReceivedMessage> {
    std::vector<bool> requires_grad;
    ASSIGN_OR_RETURN(std::vector<tensor::Tensor> tensors,
                     message.ReadTensors(shared_->counters, &requires_grad));
    if (request.intercept_messages && interceptor_ != nullptr) {
      ASSIGN_OR_RETURN(std::optional<AutogradMetadata> autograd,
                       message.ParseReplyHeader());
      if (autograd.has_value()) {
        autograd->requires_grad = std::move(requires_grad);
        RETURN_IF_ERROR(interceptor_->OnReceiveReply(request.peer->info(),
                                                     *autograd, tensors));
      }
    }
    return ReceivedMessage{std::move(message), std::move(tensors)};
  };
  absl::StatusOr<ReceivedMessage> received = read();
  if (received.ok()) return received;
  return CallError(request, UnreadReply(received.status()));
}

absl::Status Agent::Impl::CallError(const OutgoingRequest& request,
                                    absl::Status status) const {
  if (!request.heartbeat) request.peer->counters()->AddFailure();
  // What the callee says stands as it is.
  if (GetErrorDetail(status).has_value()) return status;
  const WorkerInfo& worker = request.peer->info();
  const std::string target =
      absl::StrCat(request.what, " at ", ToString(worker));
  absl::StatusCode code = status.code();
  std::string message;
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
      message = absl::StrCat(target, " did not answer in time");
      break;
    case absl::StatusCode::kCancelled:
      if (phase_.load(std::memory_order_acquire) >= Phase::kStopping) {
        message =
            absl::StrCat(target, " was cancelled: this agent was shut down");
      } else if (request.call->cancelled()) {
        message = absl::StrCat(target, " was cancelled by its caller");
      } else {
        // The peer's transport stopped under the call.
        code = absl::StatusCode::kUnavailable;
        message = absl::StrCat(target, " was cut off: ", status.message());
      }
      break;
    default:
      message = absl::StrCat(target, ": ", status.message());
      break;
  }
  absl::Status error = WithCode(code, message, status);
  // Of what the transport reports, only these are sure to precede the handler.
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
