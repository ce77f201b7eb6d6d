#include "rpc/agent/inbound/reply_sender.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/busy_timer.h"
#include "async/status_macros.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {
void ReplySender::Fail(InboundCall& call, absl::Status status) const {
  const WorkerInfo& self = state_->self();
  if (!GetErrorDetail(status).has_value()) {
    absl::Status named(status.code(), absl::StrCat("worker '", self.name,
                                                   "': ", status.message()));
    status.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) {
          named.SetPayload(url, payload);
        });
    status = std::move(named);
    SetErrorDetail({.worker = self.name, .incarnation = self.incarnation},
                   status);
  }
  call.Reply(std::move(status));
}

void ReplySender::SendResult(InboundCall& call,
                             absl::StatusOr<ErasedValue> result) const {
  if (!result.ok()) {
    Fail(call, std::move(result).status());
    return;
  }
  if (result->type->encode == nullptr) {
    Fail(call, absl::InvalidArgumentError(
                   absl::StrCat("a ", result->type->name,
                                " cannot travel: use it through a reference")));
    return;
  }
  Encoder encoder(state_->agent(), &call.source);
  if (absl::Status status = result->type->encode(encoder, result->value.get());
      !status.ok()) {
    Fail(call, std::move(status));
    return;
  }
  Send(call, EncodeCallResults(encoder.TakeValues()), encoder.TakeTensors());
}

absl::StatusOr<Payload> ReplySender::Encode(
    InboundCall& call, std::string body,
    std::vector<tensor::Tensor> tensors) const {
  OutgoingMessage message;
  MessageInterceptor* const interceptor = state_->interceptor();
  if (interceptor != nullptr && call.autograd.has_value()) {
    RETURN_IF_ERROR(CheckSendable(tensors));
    ASSIGN_OR_RETURN(std::optional<AutogradMetadata> autograd,
                     interceptor->OnSend(call.source, tensors));
    if (autograd.has_value()) {
      message.header = EncodeReplyHeader(autograd);
      message.requires_grad = std::move(autograd->requires_grad);
    }
  }
  message.body = std::move(body);
  message.tensors = std::move(tensors);
  return EncodeMessage(std::move(message), state_->transfers());
}

void ReplySender::Send(InboundCall& call, std::string body,
                       std::vector<tensor::Tensor> tensors) const {
  // Sending is not work of the function.
  async::BusyTimer::Pause pause;
  absl::StatusOr<Payload> payload =
      Encode(call, std::move(body), std::move(tensors));
  if (!payload.ok()) {
    Fail(call, payload.status());
    return;
  }
  if (call.counters != nullptr) call.counters->AddAnswer(payload->size());
  call.Reply(std::move(payload));
}

}  // namespace hawser::rpc
