#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "async/thread_pool.h"
#include "net/wire_text.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/outgoing_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/not_sent.h"
#include "rpc/functions/function_name.h"
#include "rpc/identity/timeout.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

// How long a call waits to learn where its worker is.
constexpr absl::Duration kLookUpLimit = absl::Seconds(1);

constexpr char kCallPath[] = "/hawser.v1.WorkerService/Call";

// Fields of `CallRequest` and `CallReply`.
constexpr uint32_t kFunction = 1;
constexpr uint32_t kSignature = 2;
constexpr uint32_t kArguments = 3;
constexpr uint32_t kResults = 1;

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
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
      return absl::FailedPreconditionError(
          absl::StrCat(ToString(self_), " was declared lost and must restart"));
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

absl::Status Agent::Impl::CallGateClosed() const {
  RETURN_IF_ERROR(CheckMayCall());
  return WithErrorDetail(absl::UnavailableError(absl::StrCat(
                             "the agent of ", ToString(self_), " is stopping")),
                         self_, /*maybe_applied=*/false);
}

absl::StatusOr<async::MonotonicTime> Agent::Impl::DeadlineOf(
    std::optional<absl::Duration> timeout, bool inherit) const {
  const absl::Duration limit = timeout.value_or(options_.default_timeout);
  RETURN_IF_ERROR(CheckTimeout(limit));
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

// A lost worker may have been restarted. That is looked up, since the event
// may not have come yet, but not waited for: nothing is known to be there.
absl::StatusOr<std::shared_ptr<Peer>> Agent::Impl::FindPeer(
    const Destination& to, async::MonotonicTime deadline) {
  if (absl::Status status = net::CheckUtf8("the worker name", to.name());
      !status.ok()) {
    return WithErrorDetail(std::move(status), WhatIsSaid(to),
                           /*maybe_applied=*/false);
  }
  const std::shared_ptr<Peer> known = peers_.Find(to);
  if (known != nullptr && (!known->lost() || !membership_->store_reachable())) {
    return known;
  }
  const absl::Duration limit = std::min(kLookUpLimit, TimeUntil(deadline));
  absl::StatusOr<std::shared_ptr<Peer>> found = LookUpPeer(to, known, limit);
  if (found.ok()) return found;
  absl::Status status = std::move(found).status();
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    if (known != nullptr) return known;
    const absl::StatusCode code = clock_->Now() >= deadline
                                      ? absl::StatusCode::kDeadlineExceeded
                                      : absl::StatusCode::kUnavailable;
    status = absl::Status(
        code,
        absl::StrCat(ToString(self_), " cannot look up ", to.ToString(),
                     ", as the store does not answer: ", status.message()));
  }
  return WithErrorDetail(std::move(status), WhatIsSaid(to),
                         /*maybe_applied=*/false);
}

absl::StatusOr<WorkerInfo> Agent::Impl::FindWorker(const Destination& worker) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Peer> peer,
                   FindPeer(worker, async::kNever));
  return peer->info();
}

absl::Duration Agent::Impl::default_timeout() const {
  return options_.default_timeout;
}

absl::StatusOr<std::optional<WorkerInfo>> Agent::Impl::AskForWorker(
    const Destination& to, absl::Duration limit) {
  if (const auto* id = std::get_if<WorkerId>(&to.to())) {
    return worker_directory_.FindById(*id, limit);
  }
  if (const auto* name = std::get_if<std::string>(&to.to())) {
    return worker_directory_.FindByName(*name, limit);
  }
  const WorkerInfo& worker = std::get<WorkerInfo>(to.to());
  return worker.name.empty() ? worker_directory_.FindById(worker.id, limit)
                             : worker_directory_.FindByName(worker.name, limit);
}

absl::StatusOr<std::shared_ptr<Peer>> Agent::Impl::LookUpPeer(
    const Destination& to, const std::shared_ptr<Peer>& known,
    absl::Duration limit) {
  ASSIGN_OR_RETURN(const std::optional<WorkerInfo> found,
                   AskForWorker(to, limit));
  if (const auto* wanted = std::get_if<WorkerInfo>(&to.to())) {
    const WorkerInfo& worker = *wanted;
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
  client_calls_.Begin();
}

void Agent::Impl::StartCall(const CallHandle& call, const Destination& to,
                            const CallOptions& options,
                            std::string_view function,
                            std::string_view signature,
                            absl::FunctionRef<absl::Status(Encoder&)> encode,
                            ReplyCallback done) {
  InsideScope inside(this);
  Gate::Entry entry(&call_gate_);
  const auto prepare = [&]() -> absl::StatusOr<OutgoingRequest> {
    OutgoingRequest request;
    RETURN_IF_ERROR(CheckMayCall());
    ASSIGN_OR_RETURN(request.deadline,
                     DeadlineOf(options.timeout, /*inherit=*/true));
    ASSIGN_OR_RETURN(request.peer, FindPeer(to, request.deadline));
    const WorkerInfo& worker = request.peer->info();
    Encoder encoder(agent_, &worker);
    absl::Status status = CheckFunctionName(function, signature);
    if (status.ok()) status = encode(encoder);
    if (!status.ok()) {
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
    request.intercept_messages = true;
    request.at_most_once = true;
    return request;
  };
  absl::StatusOr<OutgoingRequest> request = prepare();
  if (!entry || !request.ok()) {
    std::move(done)(WithErrorDetail(entry ? request.status() : CallGateClosed(),
                                    WhatIsSaid(to), /*maybe_applied=*/false));
    return;
  }
  BeginClientCall();
  const std::shared_ptr<Peer> peer = request->peer;
  Send(*std::move(request), [this, peer, done = std::move(done)](
                                absl::StatusOr<ReceivedMessage> reply) mutable {
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
    client_calls_.End();
  });
}

absl::StatusOr<Payload> Agent::Impl::EncodeRequest(OutgoingRequest& request) {
  OutgoingMessage message;
  std::optional<AutogradMetadata> autograd;
  if (request.intercept_messages && interceptor_ != nullptr) {
    RETURN_IF_ERROR(CheckSendable(request.tensors));
    ASSIGN_OR_RETURN(
        autograd, interceptor_->OnSend(request.peer->info(), request.tensors));
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
// 3. OnReply (agent_client_replies.cc) decodes it.
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
  if (!request.heartbeat) request.peer->counters()->AddRequest(payload->size());
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
    if (!request.heartbeat) request.peer->counters()->AddEnd();
    OnReply(request, std::move(reply), std::move(done));
  };
  call->SetAttempt(
      attempt, *connection,
      (*connection)
          ->Call(path, *std::move(payload), deadline, std::move(on_reply)));
}

}  // namespace hawser::rpc
