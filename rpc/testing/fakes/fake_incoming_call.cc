#include "rpc/testing/fakes/fake_incoming_call.h"

#include <utility>

#include "async/status_macros.h"
#include "gtest/gtest.h"
#include "rpc/transport/transfer_counters.h"

namespace hawser::rpc {

absl::StatusOr<Payload> Encode(FakeRequest request) {
  TransferCounters counters;
  return EncodeMessage({.body = std::move(request.body),
                        .header = EncodeRequestHeader(request.header),
                        .tensors = std::move(request.tensors),
                        .requires_grad = std::move(request.requires_grad)},
                       counters);
}

absl::StatusOr<FakeIncomingCall::ParsedReply> FakeIncomingCall::End::Parse()
    const {
  RETURN_IF_ERROR(reply.status());
  ASSIGN_OR_RETURN(const IncomingMessage message,
                   IncomingMessage::Parse(*reply));
  ParsedReply parsed{.body = std::string(message.body())};
  ASSIGN_OR_RETURN(parsed.autograd, message.ParseReplyHeader());
  TransferCounters counters;
  std::vector<bool> requires_grad;
  ASSIGN_OR_RETURN(parsed.tensors,
                   message.ReadTensors(counters, &requires_grad));
  if (parsed.autograd.has_value()) {
    parsed.autograd->requires_grad = std::move(requires_grad);
  }
  return parsed;
}

FakeIncomingCall::FakeIncomingCall(Payload request, Options options)
    : options_(std::move(options)), request_(std::move(request)) {}

FakeIncomingCall::~FakeIncomingCall() {
  if (end_->kind == End::Kind::kPending) SetEnd(End::Kind::kDropped);
}

void FakeIncomingCall::Reply(absl::StatusOr<Payload> reply) {
  SetEnd(End::Kind::kReplied);
  mutable_end_->reply = std::move(reply);
}

void FakeIncomingCall::Discard() { SetEnd(End::Kind::kDiscarded); }

void FakeIncomingCall::SetEnd(End::Kind kind) {
  EXPECT_EQ(end_->kind, End::Kind::kPending) << "the call ends twice";
  mutable_end_->kind = kind;
}

}  // namespace hawser::rpc
