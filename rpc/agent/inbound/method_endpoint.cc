#include "rpc/agent/inbound/method_endpoint.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/exceptions.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "rpc/functions/method.h"
#include "rpc/wire/lazy_tensor.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {
namespace {

// Larger requests are copied outside the transport's threads.
constexpr size_t kMaxInlineRequestBytes = size_t{64} << 10;

}  // namespace

absl::Status MethodEndpoint::Check(InboundCall& call) const {
  return options_.permission->CheckMethod(*options_.method, call.source);
}

const RunOn& MethodEndpoint::run_on(const InboundCall&) const {
  return options_.method->options.run_on;
}

bool MethodEndpoint::MayRunInline(const InboundCall& call) const {
  return call.request_bytes <= kMaxInlineRequestBytes;
}

absl::Status MethodEndpoint::CheckBeforeRun(InboundCall& call) const {
  if (!reads_tensors() || !call.autograd.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "method '", definition().name,
      "' reads its tensors itself, so a call of it cannot be recorded for "
      "distributed autograd: unset MethodCallOptions::intercept_messages"));
}

void MethodEndpoint::Run(const std::shared_ptr<InboundCall>& call,
                         std::vector<tensor::Tensor> tensors) const {
  RawMessage request{std::string(call->message->body()), std::move(tensors)};
  MethodCall info{.peer = call->source,
                  .deadline = call->incoming().deadline(),
                  .cancellation = call->incoming().cancellation(),
                  .request_bytes = call->request_bytes,
                  .incoming = &call->incoming()};
  if (reads_tensors()) {
    absl::StatusOr<std::vector<LazyTensor>> lazy = LazyTensorsOf(
        std::make_shared<const IncomingMessage>(*std::move(call->message)),
        std::shared_ptr<TransferCounters>(options_.state,
                                          &options_.state->transfers()));
    if (!lazy.ok()) {
      options_.replies->Fail(*call, std::move(lazy).status());
      return;
    }
    info.tensors = *std::move(lazy);
  } else {
    call->reservation.ReleaseBytes();
  }
  call->message.reset();
  absl::StatusOr<async::Future<RawMessage>> reply =
      async::CatchExceptions<absl::StatusOr<async::Future<RawMessage>>>(
          "the method",
          [&] { return options_.method->handler(info, std::move(request)); });
  if (!reply.ok() || !reply->valid()) {
    call->SetFinished();
    options_.replies->Fail(
        *call, reply.ok() ? absl::InternalError("the method returned a Future "
                                                "that is not valid")
                          : reply.status());
    return;
  }
  (void)(*std::move(reply))
      .Then([replies = options_.replies, state = options_.state,
             call](absl::StatusOr<RawMessage> result) {
        call->SetFinished();
        Gate::Entry entry(&state->gate());
        if (!entry) return;
        if (result.ok()) {
          replies->Send(*call, std::move(result->body),
                        std::move(result->tensors));
        } else {
          replies->Fail(*call, std::move(result).status());
        }
      });
  call->SetReturned();
}

}  // namespace hawser::rpc
