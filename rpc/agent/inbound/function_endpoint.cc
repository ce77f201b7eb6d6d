#include "rpc/agent/inbound/function_endpoint.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/thread_pool.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function_registry.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {
absl::Status FunctionEndpoint::Check(InboundCall& call) const {
  ASSIGN_OR_RETURN(const CallBody body, ParseCallBody(call.message->body()));
  ASSIGN_OR_RETURN(call.function,
                   options_.registry->Find(body.function, body.signature));
  call.arguments = body.arguments;
  return options_.permission->CheckFunction(*call.function, call.source,
                                            call.request_bytes);
}

const RunOn& FunctionEndpoint::run_on(const InboundCall& call) const {
  return call.function->options().run_on;
}

bool FunctionEndpoint::MayRunInline(const InboundCall&) const {
  return !async::ThreadPool::IsNearlyExhausted();
}

async::RunTime& FunctionEndpoint::run_time(const InboundCall& call) const {
  return call.function->run_time();
}

absl::Status FunctionEndpoint::CheckBeforeRun(InboundCall& call) const {
  if (call.incoming().cancellation()->cancelled()) {
    return absl::CancelledError("the call was given up before it could run");
  }
  return FunctionRunner::CheckMayBlock();
}

void FunctionEndpoint::Run(const std::shared_ptr<InboundCall>& call,
                           std::vector<tensor::Tensor> tensors) const {
  const RegisteredFunction& function = *call->function;
  Decoder decoder(options_.state->agent(), &call->source, call->arguments,
                  std::move(tensors));
  absl::StatusOr<RegisteredFunction::Invocation> invocation =
      function.Prepare(decoder);
  if (!invocation.ok()) {
    options_.replies->Fail(
        *call,
        absl::Status(invocation.status().code(),
                     absl::StrCat("arguments of function '", function.name(),
                                  "': ", invocation.status().message())));
    return;
  }
  std::vector<async::Future<void>> prerequisites = decoder.TakePrerequisites();
  const bool waits = !prerequisites.empty();
  // The bytes of the request are not needed any more.
  call->message.reset();
  call->reservation.ReleaseBytes();
  auto done = [replies = options_.replies, state = options_.state,
               call](absl::StatusOr<ErasedValue> result) {
    call->SetFinished();
    Gate::Entry entry(&state->gate());
    if (entry) replies->SendResult(*call, std::move(result));
  };
  options_.runner->RunAfter(
      std::move(prerequisites), function.options().run_on,
      [this, waits, call, invocation = *std::move(invocation),
       done = std::move(done)](absl::Status status) mutable {
        // The caller may have given up meanwhile.
        if (status.ok() && waits) status = CheckBeforeRun(*call);
        if (!status.ok()) {
          options_.replies->Fail(*call, std::move(status));
          return;
        }
        std::move(invocation)(std::move(done));
        call->SetReturned();
      });
}

}  // namespace hawser::rpc
