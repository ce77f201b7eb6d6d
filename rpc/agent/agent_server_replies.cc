#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/inbound_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

// Field of `CallReply`.
constexpr uint32_t kResults = 1;

}  // namespace

void Agent::Impl::Fail(InboundCall& call, absl::Status status) const {
  if (!GetErrorDetail(status).has_value()) {
    absl::Status named(status.code(), absl::StrCat("worker '", self_.name,
                                                   "': ", status.message()));
    status.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) {
          named.SetPayload(url, payload);
        });
    status = std::move(named);
    SetErrorDetail({.worker = self_.name, .incarnation = self_.incarnation},
                   status);
  }
  call.incoming().Reply(std::move(status));
}

void Agent::Impl::FinishUserCall(InboundCall& call,
                                 absl::StatusOr<ErasedValue> result) {
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
  Encoder encoder(agent_, &call.source);
  if (absl::Status status = result->type->encode(encoder, result->value.get());
      !status.ok()) {
    Fail(call, std::move(status));
    return;
  }
  std::string body;
  internal::AppendBytesField(kResults, encoder.TakeValues(), body);
  SendReply(call, std::move(body), encoder.TakeTensors());
}

void Agent::Impl::SendReply(InboundCall& call, std::string body,
                            std::vector<tensor::Tensor> tensors) {
  const auto encode = [&]() -> absl::StatusOr<Payload> {
    OutgoingMessage message;
    if (interceptor_ != nullptr && call.autograd.has_value()) {
      RETURN_IF_ERROR(CheckSendable(tensors));
      ASSIGN_OR_RETURN(std::optional<AutogradMetadata> autograd,
                       interceptor_->OnSend(call.source, tensors));
      if (autograd.has_value()) {
        message.header = EncodeReplyHeader(autograd);
        message.requires_grad = std::move(autograd->requires_grad);
      }
    }
    message.body = std::move(body);
    message.tensors = std::move(tensors);
    return EncodeMessage(std::move(message), shared_->counters);
  };
  absl::StatusOr<Payload> payload = encode();
  if (!payload.ok()) {
    Fail(call, payload.status());
    return;
  }
  if (call.counters != nullptr) call.counters->AddAnswer(payload->size());
  call.incoming().Reply(std::move(payload));
}

}  // namespace hawser::rpc
