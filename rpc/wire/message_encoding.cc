#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "proto/tensor.pb.h"
#include "rpc/wire/header_fields.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/wire_format.h"
#include "tensor/wire_codec.h"

namespace hawser::rpc {
namespace {

using internal::AppendBytesField;
using internal::AppendFixed64Field;
using internal::AppendVarint;
using internal::AppendVarintField;
using internal::kCallId;
using internal::kContextId;
using internal::kContextIncarnation;
using internal::kDestination;
using internal::kDestinationIncarnation;
using internal::kJob;
using internal::kMaxTensors;
using internal::kMessageId;
using internal::kReplyAutograd;
using internal::kRequestAutograd;
using internal::kRequestTrace;
using internal::kSource;
using internal::kSourceIncarnation;
using internal::kSourceRank;
using internal::kTraceParent;
using internal::kTraceState;
using internal::MakeTag;
using internal::WireType;

// Up to this size a copy is cheaper than a separate chunk.
constexpr int64_t kMaxInlineTensorBytes = 1024;

void AppendAutograd(uint32_t field,
                    const std::optional<AutogradMetadata>& autograd,
                    std::string& out) {
  if (!autograd.has_value()) return;
  std::string metadata;
  AppendVarintField(kContextId, autograd->context_id, metadata);
  AppendVarintField(kMessageId, autograd->message_id, metadata);
  AppendFixed64Field(kContextIncarnation,
                     ToNumber(autograd->context_incarnation), metadata);
  AppendBytesField(field, metadata, out);
}

void AppendTrace(const TraceContext& trace, std::string& out) {
  if (!trace.IsValid()) return;
  std::string context;
  AppendBytesField(kTraceParent, trace.traceparent, context);
  if (!trace.tracestate.empty()) {
    AppendBytesField(kTraceState, trace.tracestate, context);
  }
  AppendBytesField(kRequestTrace, context, out);
}

// Converts the tensor to its wire layout; copies only if necessary.
absl::StatusOr<tensor::Tensor> ToDense(const tensor::Tensor& value,
                                       TransferCounters& counters) {
  if (value.is_contiguous()) return value;
  counters.AddCopiedToSend(value.byte_size());
  return value.Detach().Contiguous();
}

}  // namespace

void AppendCallFields(uint64_t call_id,
                      const std::optional<AutogradMetadata>& autograd,
                      const TraceContext& trace, std::string& header) {
  if (call_id != 0) AppendVarintField(kCallId, call_id, header);
  AppendAutograd(kRequestAutograd, autograd, header);
  AppendTrace(trace, header);
}

std::string EncodeRequestHeader(const RequestHeader& header) {
  std::string out;
  AppendBytesField(kJob, header.job, out);
  AppendBytesField(kSource, header.source, out);
  AppendVarintField(kSourceRank,
                    static_cast<uint64_t>(header.source_rank.value()), out);
  AppendFixed64Field(kSourceIncarnation, ToNumber(header.source_incarnation),
                     out);
  AppendBytesField(kDestination, header.destination, out);
  AppendFixed64Field(kDestinationIncarnation,
                     ToNumber(header.destination_incarnation), out);
  AppendCallFields(header.call_id, header.autograd, header.trace, out);
  return out;
}

std::string EncodeReplyHeader(const std::optional<AutogradMetadata>& autograd) {
  std::string out;
  AppendAutograd(kReplyAutograd, autograd, out);
  return out;
}

absl::Status CheckSendable(std::span<const tensor::Tensor> tensors) {
  if (tensors.size() > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message carries at most ", kMaxTensors,
                     " tensors, not ", tensors.size()));
  }
  for (const tensor::Tensor& value : tensors) {
    if (!value.defined()) {
      return absl::InvalidArgumentError("a tensor to be sent is undefined");
    }
    if (!value.device().is_cpu()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tensor to be sent is ", value.ToString(),
          "; messages carry tensors on the CPU only: send "
          "autograd::ToDevice(tensor, tensor::kCpu), and copy it to a device "
          "where it arrives"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Payload> EncodeMessage(OutgoingMessage message,
                                      TransferCounters& counters) {
  HAWSER_CHECK(message.requires_grad.empty() ||
               message.requires_grad.size() == message.tensors.size())
      << "a flag per tensor";
  std::string head = std::move(message.body);
  if (!message.header.empty()) {
    AppendBytesField(kHeaderField, message.header, head);
  }
  if (message.tensors.empty()) return Payload(std::move(head));

  RETURN_IF_ERROR(CheckSendable(message.tensors));
  for (size_t i = 0; i < message.tensors.size(); ++i) {
    tensor::Tensor& value = message.tensors[i];
    ASSIGN_OR_RETURN(value, ToDense(value, counters));
    const bool requires_grad =
        !message.requires_grad.empty() && message.requires_grad[i];
    AppendBytesField(kTensorsField,
                     tensor::ToHeader(value, requires_grad).SerializeAsString(),
                     head);
  }
  Payload payload;
  for (tensor::Tensor& value : message.tensors) {
    const int64_t bytes = value.byte_size();
    counters.AddSent(bytes);
    AppendVarint(MakeTag(kTensorDataField, WireType::kBytes), head);
    AppendVarint(bytes, head);
    if (bytes <= kMaxInlineTensorBytes) {
      if (bytes > 0) {
        head.append(static_cast<const char*>(
                        static_cast<const tensor::Tensor&>(value).raw_data()),
                    bytes);
      }
      counters.AddCopiedToSend(bytes);
      continue;
    }
    payload.Append(std::exchange(head, {}));
    auto owner = std::make_shared<const tensor::Tensor>(std::move(value));
    const void* data = owner->raw_data();
    payload.Append(std::move(owner), data, bytes);
  }
  payload.Append(std::move(head));
  return payload;
}

}  // namespace hawser::rpc
