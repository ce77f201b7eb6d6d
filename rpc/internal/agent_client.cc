#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "async/thread_pool.h"
#include "rpc/current_call.h"
#include "rpc/error_detail.h"
#include "rpc/internal/agent_impl.h"
#include "rpc/internal/outgoing_call.h"
#include "rpc/internal/wire_format.h"
#include "rpc/unsent.h"

namespace hawser::rpc {
namespace {

constexpr char kCallPath[] = "/hawser.v1.WorkerService/Call";

// Fields of `CallRequest` and `CallReply`.
constexpr uint32_t kFunction = 1;
constexpr uint32_t kSignature = 2;
constexpr uint32_t kArguments = 3;
constexpr uint32_t kResults = 1;

// A reply with more tensor bytes is copied on the executor, so that the
// transport's thread can go on.
constexpr uint64_t kMaxInlineReadBytes = 64 << 10;

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

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

// The field of `CallReply` that holds the results.
absl::StatusOr<std::string_view> FindResults(std::string_view body) {
  std::string_view results;
  internal::WireReader reader(body);
  internal::WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) {
      return absl::InternalError("the reply is malformed");
    }
    if (field.number == kResults && field.type == internal::WireType::kBytes) {
      results = field.bytes;
    }
  }
  return results;
}

}  // namespace

absl::Status Agent::Impl::CheckRunning() const {
  switch (phase_.load(std::memory_order_acquire)) {
    case Phase::kNew:
    case Phase::kRunning:
    case Phase::kLeaving:
      if (!fenced_.load(std::memory_order_acquire)) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          ToString(self_), " was declared lost and must start anew"));
    case Phase::kStopping:
      return absl::UnavailableError(
          absl::StrCat("the agent of ", ToString(self_), " is stopping"));
    case Phase::kStopped:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the agent of ", ToString(self_), " was shut down"));
}

absl::Status Agent::Impl::CheckMayCall() const {
  return WithErrorDetail(CheckRunning(), self_, /*maybe_applied=*/false);
}

absl::StatusOr<async::MonotonicTime> Agent::Impl::DeadlineOf(
    std::optional<absl::Duration> timeout, bool inherit) const {
  const absl::Duration limit = timeout.value_or(options_.default_timeout);
  if (limit < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the timeout ", absl::FormatDuration(limit),
                     " is negative; rpc::kNoTimeout waits for ever"));
  }
  async::MonotonicTime deadline = async::kNever;
  if (limit != kNoTimeout) {
    deadline =
        async::AddDelay(clock_->Now(), absl::Ceil(limit, absl::Nanoseconds(1)));
  }
  if (inherit) {
    if (const CurrentCall* current = CurrentCall::Get()) {
      deadline = std::min(deadline, current->deadline());
    }
  }
  return deadline;
}

bool Agent::Impl::IsLost(const WorkerInfo& worker) const {
  async::MutexLock lock(&mutex_);
  return lost_.contains(worker.incarnation);
}

WorkerInfo Agent::Impl::WhatIsSaid(const Destination& to) {
  if (const auto* worker = std::get_if<WorkerInfo>(&to.to())) return *worker;
  WorkerInfo worker;
  worker.name = to.name();
  return worker;
}

absl::StatusOr<std::shared_ptr<Peer>> Agent::Impl::FindPeer(
    const Destination& to) {
  std::shared_ptr<Peer> peer = peers_.Find(to);
  if (peer != nullptr && !peer->lost()) return peer;
  absl::StatusOr<std::shared_ptr<Peer>> found = LookUpPeer(to, peer);
  if (found.ok()) return found;
  return WithErrorDetail(std::move(found).status(), WhatIsSaid(to),
                         /*maybe_applied=*/false);
}

absl::StatusOr<std::shared_ptr<Peer>> Agent::Impl::LookUpPeer(
    const Destination& to, const std::shared_ptr<Peer>& known) {
  std::optional<WorkerInfo> found;
  if (const auto* id = std::get_if<WorkerId>(&to.to())) {
    ASSIGN_OR_RETURN(found, rendezvous_.FindById(*id));
  } else if (const auto* name = std::get_if<std::string>(&to.to())) {
    ASSIGN_OR_RETURN(found, rendezvous_.FindByName(*name));
  } else {
    const WorkerInfo& worker = std::get<WorkerInfo>(to.to());
    if (worker.name.empty()) {
      ASSIGN_OR_RETURN(found, rendezvous_.FindById(worker.id));
    } else {
      ASSIGN_OR_RETURN(found, rendezvous_.FindByName(worker.name));
    }
    if (found.has_value() && found->incarnation != worker.incarnation) {
      if (known != nullptr) return known;
      return absl::FailedPreconditionError(
          absl::StrCat(ToString(worker), " is not the one that has its ",
                       worker.name.empty() ? "rank" : "name", " now: that is ",
                       ToString(*found)));
    }
  }
  if (!found.has_value() || IsLost(*found)) {
    if (known != nullptr) return known;
    return absl::NotFoundError(absl::StrCat(ToString(self_), " finds no ",
                                            to.ToString(), " in job '",
                                            options_.job, "'"));
  }
  return AddPeer(*found);
}

void Agent::Impl::Watch(const std::shared_ptr<Peer>& peer) {
  if (peer->SetWatched() && peer->info().incarnation != self_.incarnation) {
    monitor_->Watch(peer);
  }
}

void Agent::Impl::BeginClientCall() {
  num_calls_made_.fetch_add(1, std::memory_order_relaxed);
  num_client_calls_.fetch_add(1, std::memory_order_relaxed);
}

void Agent::Impl::EndClientCall() {
  if (num_client_calls_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  async::MutexLock lock(&mutex_);
  changed_.NotifyAll();
}

void Agent::Impl::StartCall(const CallHandle& call, const Destination& to,
                            const CallOptions& options,
                            std::string_view function,
                            std::string_view signature,
                            absl::FunctionRef<absl::Status(Encoder&)> encode,
                            ReplyCallback done) {
  InsideScope inside(this);
  Gate::Pass pass(&call_gate_);
  const auto prepare = [&]() -> absl::StatusOr<OutgoingRequest> {
    OutgoingRequest request;
    RETURN_IF_ERROR(CheckMayCall());
    ASSIGN_OR_RETURN(request.deadline,
                     DeadlineOf(options.timeout, /*inherit=*/true));
    ASSIGN_OR_RETURN(request.peer, FindPeer(to));
    const WorkerInfo& worker = request.peer->info();
    Encoder encoder(agent_, &worker);
    if (absl::Status status = encode(encoder); !status.ok()) {
      return WithErrorDetail(std::move(status), worker,
                             /*maybe_applied=*/false);
    }
    request.call = call;
    request.what = absl::StrCat("function '", ToAbsl(function), "'");
    request.path = kCallPath;
    internal::AppendBytesField(kFunction, function, request.body);
    internal::AppendBytesField(kSignature, signature, request.body);
    internal::AppendBytesField(kArguments, encoder.TakeValues(), request.body);
    request.tensors = encoder.TakeTensors();
    request.message_hook = true;
    request.at_most_once = true;
    return request;
  };
  absl::StatusOr<OutgoingRequest> request = prepare();
  if (!pass || !request.ok()) {
    std::move(done)(
        WithErrorDetail(request.ok() ? CheckMayCall() : request.status(),
                        WhatIsSaid(to), /*maybe_applied=*/false));
    return;
  }
  BeginClientCall();
  const std::shared_ptr<Peer> peer = request->peer;
  Send(*std::move(request), [this, peer, done = std::move(done)](
                                absl::StatusOr<Received> reply) mutable {
    if (!reply.ok()) {
      std::move(done)(std::move(reply).status());
    } else if (auto results = FindResults(reply->message.body());
               !results.ok()) {
      std::move(done)(WithErrorDetail(results.status(), peer->info(),
                                      /*maybe_applied=*/true));
    } else {
      Decoder decoder(agent_, &peer->info(), *results,
                      std::move(reply->tensors));
      std::move(done)(&decoder);
    }
    EndClientCall();
  });
}

absl::StatusOr<Payload> Agent::Impl::EncodeRequest(OutgoingRequest& request) {
  OutgoingMessage message;
  std::optional<AutogradMetadata> autograd;
  if (request.message_hook && hook_ != nullptr) {
    ASSIGN_OR_RETURN(autograd,
                     hook_->OnSend(request.peer->info(), request.tensors));
    if (autograd.has_value()) {
      message.requires_grad = std::move(autograd->requires_grad);
    }
  }
  message.header = request.peer->header();
  AppendCallFields(
      request.at_most_once
          ? last_call_id_.fetch_add(1, std::memory_order_relaxed) + 1
          : 0,
      autograd, message.header);
  message.body = std::move(request.body);
  message.tensors = std::move(request.tensors);
  return EncodeMessage(std::move(message), shared_->counters);
}

// 1. Checks what can be checked before sending, and encodes.
// 2. Hands the request to the connection; a parent call's end cancels it.
// 3. OnReply decodes, in the transport's thread, or, where there is much to
//    copy, on the executor.
void Agent::Impl::Send(OutgoingRequest request, ReceivedCallback done) {
  const WorkerInfo& worker = request.peer->info();
  if (request.at_most_once) request.peer->BeginCall();
  const auto fail = [&](absl::Status status) {
    if (request.at_most_once) request.peer->EndCall();
    std::move(done)(
        WithErrorDetail(std::move(status), worker, request.attempted));
  };
  if (request.deadline <= clock_->Now()) {
    fail(absl::DeadlineExceededError(
        absl::StrCat("the deadline of ", request.what, " at ", ToString(worker),
                     " had passed before it was sent")));
    return;
  }
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      request.heartbeat ? request.peer->heartbeat_connection()
                        : request.peer->connection();
  if (!connection.ok()) {
    fail(connection.status());
    return;
  }
  absl::StatusOr<Payload> payload = EncodeRequest(request);
  if (!payload.ok()) {
    fail(payload.status());
    return;
  }
  Watch(request.peer);
  if (const CurrentCall* current = CurrentCall::Get();
      current != nullptr && request.inherit_cancellation) {
    request.call->FollowParent(current->cancellation());
  }
  const CallHandle call = request.call;
  const uint64_t attempt = call->BeginAttempt();
  const std::string path = request.path;
  const async::MonotonicTime deadline = request.deadline;
  auto on_reply = [this, attempt, request = std::move(request),
                   context = async::TaskContext::Capture(),
                   done =
                       std::move(done)](absl::StatusOr<Payload> reply) mutable {
    InsideScope inside(this);
    async::TaskContext::Scope scope(std::move(context));
    request.call->EndAttempt(attempt);
    if (request.at_most_once) request.peer->EndCall();
    OnReply(request, std::move(reply), std::move(done));
  };
  call->SetAttempt(
      attempt, *connection,
      (*connection)
          ->Call(path, *std::move(payload), deadline, std::move(on_reply)));
}

void Agent::Impl::OnReply(const OutgoingRequest& request,
                          absl::StatusOr<Payload> reply,
                          ReceivedCallback done) {
  if (!reply.ok()) {
    std::move(done)(CallError(request, std::move(reply).status()));
    return;
  }
  request.peer->SetAnswered(clock_->Now());
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(*std::move(reply));
  if (!message.ok()) {
    std::move(done)(CallError(request, UnreadReply(message.status())));
    return;
  }
  // What hangs on the reply may block.
  if (message->tensor_bytes() <= kMaxInlineReadBytes &&
      !async::ThreadPool::IsNearlyExhausted()) {
    std::move(done)(ReadReply(request, *std::move(message)));
    return;
  }
  Post(*executor_, [this, request, message = *std::move(message),
                    done = std::move(done)]() mutable {
    std::move(done)(ReadReply(request, std::move(message)));
  });
}

absl::StatusOr<Agent::Impl::Received> Agent::Impl::ReadReply(
    const OutgoingRequest& request, IncomingMessage message) {
  const auto read = [&]() -> absl::StatusOr<Received> {
    std::vector<bool> requires_grad;
    ASSIGN_OR_RETURN(std::vector<tensor::Tensor> tensors,
                     message.ReadTensors(shared_->counters, &requires_grad));
    if (request.message_hook && hook_ != nullptr) {
      ASSIGN_OR_RETURN(std::optional<AutogradMetadata> autograd,
                       message.ParseReplyHeader());
      if (autograd.has_value()) {
        autograd->requires_grad = std::move(requires_grad);
        RETURN_IF_ERROR(
            hook_->OnReceiveReply(request.peer->info(), *autograd, tensors));
      }
    }
    return Received{std::move(message), std::move(tensors)};
  };
  absl::StatusOr<Received> received = read();
  if (received.ok()) return received;
  return CallError(request, UnreadReply(received.status()));
}

absl::Status Agent::Impl::CallError(const OutgoingRequest& request,
                                    absl::Status status) const {
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
                             (request.attempted || !IsUnsent(status));
  ClearUnsent(error);
  SetErrorDetail({.worker = worker.name,
                  .incarnation = worker.incarnation,
                  .maybe_applied = maybe_applied},
                 error);
  return error;
}

}  // namespace hawser::rpc
