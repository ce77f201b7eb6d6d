#include <utility>

#include "absl/strings/str_cat.h"
#include "async/exceptions.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "async/thread_pool.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/inbound_call.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

// Fields of `CallRequest`.
constexpr uint32_t kFunction = 1;
constexpr uint32_t kSignature = 2;
constexpr uint32_t kArguments = 3;

// Tensors of more are copied outside the transport's threads.
constexpr size_t kMaxInlineRequestBytes = size_t{64} << 10;

struct CallBody {
  std::string_view function;
  std::string_view signature;
  std::string_view arguments;
};

absl::StatusOr<CallBody> ParseCallBody(std::string_view bytes) {
  CallBody body;
  internal::WireReader reader(bytes);
  internal::WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) {
      return absl::InternalError("the request received is malformed");
    }
    if (field.type != internal::WireType::kBytes) continue;
    if (field.number == kFunction) body.function = field.bytes;
    if (field.number == kSignature) body.signature = field.bytes;
    if (field.number == kArguments) body.arguments = field.bytes;
  }
  return body;
}

// A function may wait for calls that come back here: not on the last threads.
absl::Status CheckMayBlock() {
  if (!async::ThreadPool::IsNearlyExhausted()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "so many calls wait here for others that no thread is left for one more: "
      "they call each other without end, or AgentOptions::max_threads is too "
      "low");
}

}  // namespace

void Agent::Impl::Post(async::Executor& executor,
                       absl::AnyInvocable<void() &&> action) {
  executor.Post([this, shared = shared_, action = std::move(action)]() mutable {
    Gate::Entry entry(&shared->gate);
    if (!entry) return;
    InsideScope inside(this);
    // Destroyed inside the gate.
    absl::AnyInvocable<void()&&> now = std::move(action);
    std::move(now)();
  });
}

async::Executor& Agent::Impl::ExecutorOf(const RunOn& run_on) {
  if (run_on.kind() != RunOn::Kind::kQueue) return *executor_;
  async::MutexLock lock(&mutex_);
  std::unique_ptr<async::SerialQueue>& queue = queues_[run_on.queue()];
  if (queue == nullptr) queue = std::make_unique<async::SerialQueue>(executor_);
  return *queue;
}

absl::StatusOr<std::pair<std::vector<tensor::Tensor>, async::TaskContext>>
Agent::Impl::ReadRequest(InboundCall& call) {
  std::vector<bool> requires_grad;
  ASSIGN_OR_RETURN(
      std::vector<tensor::Tensor> tensors,
      call.message->ReadTensors(shared_->counters, &requires_grad));
  async::TaskContext context;
  if (interceptor_ != nullptr && call.autograd.has_value()) {
    call.autograd->requires_grad = std::move(requires_grad);
    ASSIGN_OR_RETURN(context, interceptor_->OnReceiveRequest(
                                  call.source, *call.autograd, tensors));
  }
  return std::pair(std::move(tensors), std::move(context));
}

// 1. Checks header, function, signature and permission, in the transport's
//    thread, or, where the store must be asked for the caller's roles, on the
//    pool.
// 2. RunUserCall, where the function wants to run, copies the tensors, reads
//    the arguments, waits for prerequisites, and runs it.
// 3. FinishUserCall (agent_server_replies.cc) answers, in the thread in which
// the
//    result came.
void Agent::Impl::OnUserCall(std::unique_ptr<IncomingCall> incoming) {
  Gate::Entry entry(&shared_->gate);
  if (!entry) return;
  InsideScope inside(this);
  auto call = std::make_shared<InboundCall>(shared_, std::move(incoming));
  if (absl::Status status = Admit(*call, /*begins_work=*/true, &user_quota_);
      !status.ok()) {
    Refuse(*call, std::move(status), /*at_most_once=*/true);
    return;
  }
  absl::StatusOr<CallBody> body = ParseCallBody(call->message->body());
  if (!body.ok()) {
    Fail(*call, body.status());
    return;
  }
  absl::StatusOr<const RegisteredFunction*> function =
      options_.registry->Find(body->function, body->signature);
  if (!function.ok()) {
    Fail(*call, function.status());
    return;
  }
  absl::Status allowed =
      CheckPermission(**function, call->source, call->request_bytes);
  if (allowed.ok()) {
    AcceptUserCall(call, **function, body->arguments);
    return;
  }
  if (!MayHaveOtherRoles(call->source)) {
    Fail(*call, std::move(allowed));
    return;
  }
  Post(*executor_,
       [this, call, found = *function, arguments = body->arguments] {
         absl::Status status =
             LookUpPermission(*found, call->source, call->request_bytes);
         if (status.ok()) {
           AcceptUserCall(call, *found, arguments);
         } else {
           Fail(*call, std::move(status));
         }
       });
}

void Agent::Impl::AcceptUserCall(const std::shared_ptr<InboundCall>& call,
                                 const RegisteredFunction& function,
                                 std::string_view arguments) {
  if (call->call_id != 0 &&
      !duplicates_.FirstSeen(call->source.incarnation, call->call_id)) {
    call->incoming().Discard();
    return;
  }
  const RunOn& run_on = function.options().run_on;
  if (run_on.kind() == RunOn::Kind::kInline &&
      !async::ThreadPool::IsNearlyExhausted()) {
    RunUserCall(call, function, arguments);
    return;
  }
  Post(ExecutorOf(run_on), [this, call, &function, arguments] {
    RunUserCall(call, function, arguments);
  });
}

void Agent::Impl::RunUserCall(const std::shared_ptr<InboundCall>& call,
                              const RegisteredFunction& function,
                              std::string_view arguments) {
  if (call->incoming().cancellation()->cancelled()) {
    Fail(*call,
         absl::CancelledError("the call was given up before it could run"));
    return;
  }
  if (absl::Status status = CheckMayBlock(); !status.ok()) {
    Fail(*call, std::move(status));
    return;
  }
  auto request = ReadRequest(*call);
  if (!request.ok()) {
    Fail(*call, request.status());
    return;
  }
  async::TaskContext::Scope context(std::move(request->second));
  CurrentCall::Scope current(CurrentCall(agent_, call->source,
                                         call->incoming().deadline(),
                                         call->incoming().cancellation()));
  Decoder decoder(agent_, &call->source, arguments, std::move(request->first));
  absl::StatusOr<RegisteredFunction::Invocation> invocation =
      function.Prepare(decoder);
  if (!invocation.ok()) {
    Fail(*call,
         absl::Status(invocation.status().code(),
                      absl::StrCat("arguments of function '", function.name(),
                                   "': ", invocation.status().message())));
    return;
  }
  std::vector<async::Future<void>> prerequisites = decoder.TakePrerequisites();
  // The request's bytes are not needed any more.
  call->message.reset();
  call->reservation.ReleaseBytes();
  auto done = [this, shared = shared_,
               call](absl::StatusOr<ErasedValue> result) {
    call->SetFinished();
    Gate::Entry entry(&shared->gate);
    if (entry) FinishUserCall(*call, std::move(result));
  };
  if (prerequisites.empty()) {
    (*std::move(invocation))(std::move(done));
    call->SetReturned();
    return;
  }
  async::JoinAll(std::move(prerequisites))
      .OnReady([this, shared = shared_, call, &function, done = std::move(done),
                invocation = *std::move(invocation)](
                   const absl::Status& status) mutable {
        Gate::Entry entry(&shared->gate);
        if (!entry) return;
        if (!status.ok()) {
          Fail(*call, status);
          return;
        }
        Post(ExecutorOf(function.options().run_on),
             [call, invocation = std::move(invocation),
              done = std::move(done)]() mutable {
               std::move(invocation)(std::move(done));
               call->SetReturned();
             });
      });
}

void Agent::Impl::OnMethodCall(const RegisteredMethod& method,
                               std::unique_ptr<IncomingCall> incoming) {
  Gate::Entry entry(&shared_->gate);
  if (!entry) return;
  InsideScope inside(this);
  auto call = std::make_shared<InboundCall>(shared_, std::move(incoming));
  CallQuota* const quota = method.options.counted ? &method_quota_ : nullptr;
  if (absl::Status status =
          Admit(*call, method.definition->at_most_once, quota);
      !status.ok()) {
    Refuse(*call, std::move(status), method.definition->at_most_once);
    return;
  }
  if (absl::Status status = CheckObserver(method, call->source); !status.ok()) {
    Refuse(*call, std::move(status), method.definition->at_most_once);
    return;
  }
  if (method.definition->at_most_once && call->call_id != 0 &&
      !duplicates_.FirstSeen(call->source.incarnation, call->call_id)) {
    call->incoming().Discard();
    return;
  }
  const RunOn& run_on = method.options.run_on;
  if (run_on.kind() == RunOn::Kind::kInline &&
      call->request_bytes <= kMaxInlineRequestBytes) {
    RunMethod(call, method);
    return;
  }
  Post(ExecutorOf(run_on), [this, call, &method] { RunMethod(call, method); });
}

void Agent::Impl::RunMethod(const std::shared_ptr<InboundCall>& call,
                            const RegisteredMethod& method) {
  auto request = ReadRequest(*call);
  if (!request.ok()) {
    Fail(*call, request.status());
    return;
  }
  RawMessage raw{std::string(call->message->body()), std::move(request->first)};
  call->message.reset();
  call->reservation.ReleaseBytes();
  const MethodCall info{.peer = call->source,
                        .deadline = call->incoming().deadline(),
                        .cancellation = call->incoming().cancellation(),
                        .request_bytes = call->request_bytes};
  async::TaskContext::Scope context(std::move(request->second));
  CurrentCall::Scope current(
      CurrentCall(agent_, info.peer, info.deadline, info.cancellation));
  absl::StatusOr<async::Future<RawMessage>> answer =
      async::CatchExceptions<absl::StatusOr<async::Future<RawMessage>>>(
          "the method", [&] { return method.handler(info, std::move(raw)); });
  if (!answer.ok() || !answer->valid()) {
    call->SetFinished();
    Fail(*call, answer.ok() ? absl::InternalError(
                                  "the method returned a Future that is not "
                                  "valid")
                            : answer.status());
    return;
  }
  (void)(*std::move(answer))
      .Then([this, shared = shared_, call](absl::StatusOr<RawMessage> reply) {
        call->SetFinished();
        Gate::Entry entry(&shared->gate);
        if (!entry) return;
        if (!reply.ok()) {
          Fail(*call, std::move(reply).status());
        } else {
          SendReply(*call, std::move(reply->body), std::move(reply->tensors));
        }
      });
  call->SetReturned();
}

async::Future<ErasedValue> Agent::Impl::Invoke(
    const RegisteredFunction& function, Decoder& arguments) {
  absl::StatusOr<RegisteredFunction::Invocation> prepared =
      function.Prepare(arguments);
  if (!prepared.ok()) {
    return async::MakeReadyFuture<ErasedValue>(prepared.status());
  }
  async::Promise<ErasedValue> promise;
  async::Future<ErasedValue> future = promise.future();
  auto run = [this, &function, invocation = *std::move(prepared),
              promise = std::move(promise)](absl::Status status) mutable {
    if (!status.ok()) {
      promise.Set(std::move(status));
      return;
    }
    auto invoke = [invocation = std::move(invocation),
                   promise = std::move(promise)]() mutable {
      if (absl::Status exhausted = CheckMayBlock(); !exhausted.ok()) {
        promise.Set(std::move(exhausted));
        return;
      }
      std::move(invocation)([promise = std::move(promise)](
                                absl::StatusOr<ErasedValue> result) mutable {
        promise.Set(std::move(result));
      });
    };
    if (function.options().run_on.kind() == RunOn::Kind::kInline &&
        !async::ThreadPool::IsNearlyExhausted()) {
      invoke();
    } else {
      Post(ExecutorOf(function.options().run_on), std::move(invoke));
    }
  };
  std::vector<async::Future<void>> prerequisites =
      arguments.TakePrerequisites();
  if (prerequisites.empty()) {
    run(absl::OkStatus());
    return future;
  }
  async::JoinAll(std::move(prerequisites))
      .OnReady([shared = shared_,
                run = std::move(run)](const absl::Status& status) mutable {
        Gate::Entry entry(&shared->gate);
        if (entry) run(status);
      });
  return future;
}

}  // namespace hawser::rpc
