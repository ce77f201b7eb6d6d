#include "rpc/agent/outbound/request_sender.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/task_local.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/agent/outbound/outgoing_request.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/not_sent.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_transport.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::Optional;
using ::testing::ResultOf;
using ::testing::SizeIs;

constexpr async::TaskLocal<int> kLabel;

tensor::Tensor Floats(int64_t size) { return tensor::Tensor::Zeros({size}); }

// Bytes of a message with that body and those tensors.
Payload Encoded(std::string body, std::vector<tensor::Tensor> tensors = {},
                std::string header = "") {
  TransferCounters counters;
  absl::StatusOr<Payload> payload =
      EncodeMessage({.body = std::move(body),
                     .header = std::move(header),
                     .tensors = std::move(tensors)},
                    counters);
  EXPECT_THAT(payload, IsOk());
  return payload.ok() ? *std::move(payload) : Payload();
}

// Attaches metadata to messages, and records the replies.
class FakeInterceptor final : public MessageInterceptor {
 public:
  absl::StatusOr<std::optional<AutogradMetadata>> OnSend(
      const WorkerInfo&, std::span<const tensor::Tensor>) override {
    ++num_sent;
    return on_send;
  }
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const WorkerInfo&, const AutogradMetadata&,
      std::span<tensor::Tensor>) override {
    return absl::UnimplementedError("not a server");
  }
  absl::Status OnReceiveReply(const WorkerInfo&,
                              const AutogradMetadata& metadata,
                              std::span<tensor::Tensor>) override {
    received.push_back(metadata.message_id);
    return on_reply;
  }

  absl::StatusOr<std::optional<AutogradMetadata>> on_send;
  absl::Status on_reply;
  int num_sent = 0;
  std::vector<uint64_t> received;
};

class RequestSenderTest : public testing::Test {
 protected:
  void TearDown() override { transport_.Shutdown(); }

  OutgoingRequest MakeRequest() {
    OutgoingRequest request;
    request.call = std::make_shared<OutgoingCall>();
    request.peer = peer_;
    request.description = "function 'f'";
    request.path = "/test/Path";
    request.deadline = async::AddDelay(clock_.Now(), absl::Seconds(9));
    return request;
  }
  OutgoingRequest MakeAtMostOnce() {
    OutgoingRequest request = MakeRequest();
    request.at_most_once = true;
    return request;
  }

  // Sends `request`, and keeps its outcome in `error_` or `reply_`.
  bool Send(OutgoingRequest request) {
    error_.reset();
    reply_.reset();
    return sender_.Send(std::move(request),
                        [this](absl::StatusOr<ReceivedMessage> result) {
                          ++num_outcomes_;
                          if (result.ok()) {
                            reply_ = *std::move(result);
                          } else {
                            error_ = result.status();
                          }
                        });
  }
  // Sends `request`, which the transport ends with `error`.
  void SendAndFail(OutgoingRequest request, absl::Status error) {
    ASSERT_TRUE(Send(std::move(request)));
    transport_.TakeCall()->Fail(std::move(error));
    ASSERT_NE(error_, std::nullopt);
  }

  // The header of the oldest request that was not taken.
  RequestHeader TakeHeader() {
    const std::shared_ptr<FakeCall> call = transport_.TakeCall();
    if (call == nullptr) return {};
    absl::StatusOr<IncomingMessage> message =
        IncomingMessage::Parse(call->request());
    EXPECT_THAT(message, IsOk());
    if (!message.ok()) return {};
    messages_.push_back(std::make_unique<IncomingMessage>(*std::move(message)));
    const absl::StatusOr<RequestHeader> header =
        messages_.back()->ParseRequestHeader();
    EXPECT_THAT(header, IsOk());
    return header.ok() ? *header : RequestHeader();
  }

  // That of `error_`; nullopt if the request did not fail.
  std::optional<ErrorDetail> error_detail() const {
    return error_.has_value() ? GetErrorDetail(*error_) : std::nullopt;
  }
  ErrorDetail Detail(bool maybe_applied) const {
    return {.worker = info_.name,
            .incarnation = info_.incarnation,
            .maybe_applied = maybe_applied};
  }
  bool PeerIsIdle() { return peer_->WhenIdle().ready(); }

  const WorkerInfo info_{.name = "w1",
                         .id = WorkerId(1),
                         .incarnation = Incarnation{8},
                         .address = "host1:1"};
  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  FakeTransport transport_;
  const std::shared_ptr<AgentState> state_ = std::make_shared<AgentState>(
      AgentState::Options{.self = {.name = "w0",
                                   .id = WorkerId(0),
                                   .incarnation = Incarnation{7},
                                   .address = "host0:1"},
                          .job = "job",
                          .clock = &clock_,
                          .executor = &executor_,
                          .control_executor = &executor_});
  const std::shared_ptr<Peer> peer_ = std::make_shared<Peer>(
      info_,
      EncodeRequestHeader({.job = "job",
                           .source = "w0",
                           .source_rank = WorkerId(0),
                           .source_incarnation = Incarnation{7},
                           .destination = "w1",
                           .destination_incarnation = Incarnation{8},
                           .autograd = std::nullopt}),
      &transport_);
  RequestSender sender_{state_};
  // Keep alive the views of parsed headers.
  std::vector<std::unique_ptr<IncomingMessage>> messages_;
  std::optional<absl::Status> error_;
  std::optional<ReceivedMessage> reply_;
  int num_outcomes_ = 0;
};

// --- Requests that are not sent.

TEST_F(RequestSenderTest, RequestWhoseDeadlineHasPassedIsNotSent) {
  OutgoingRequest request = MakeAtMostOnce();
  request.deadline = clock_.Now();
  EXPECT_FALSE(Send(std::move(request)));
  EXPECT_THAT(
      error_,
      Optional(StatusIs(absl::StatusCode::kDeadlineExceeded,
                        AllOf(HasSubstr("function 'f'"), HasSubstr("'w1'")))));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  EXPECT_THAT(transport_.targets(), IsEmpty());
  EXPECT_EQ(peer_->counters()->totals().sent, 0u);
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, RequestThatCannotBeEncodedIsNotSent) {
  OutgoingRequest request = MakeAtMostOnce();
  request.tensors = {tensor::Tensor()};
  EXPECT_FALSE(Send(std::move(request)));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kInvalidArgument)));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  EXPECT_THAT(transport_.TakeCall(), IsNull());
  EXPECT_EQ(peer_->counters()->totals().sent, 0u);
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, RequestToALostPeerFailsWithTheReasonOfTheLoss) {
  peer_->MarkLost(absl::UnavailableError("w1 was lost"));
  EXPECT_FALSE(Send(MakeAtMostOnce()));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kUnavailable,
                                        "w1 was lost")));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  EXPECT_THAT(transport_.targets(), IsEmpty());
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, ConnectionThatCannotBeOpenedFailsTheRequest) {
  transport_.RefuseConnections(absl::InvalidArgumentError("bad address"));
  EXPECT_FALSE(Send(MakeAtMostOnce()));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kInvalidArgument,
                                        "bad address")));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, CallThatWasCancelledBeforeIsNotSent) {
  OutgoingRequest cancelled = MakeAtMostOnce();
  cancelled.call->Cancel();
  EXPECT_FALSE(Send(std::move(cancelled)));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kCancelled,
                                        HasSubstr("by its caller"))));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  const auto parent = std::make_shared<Cancellation>();
  parent->Cancel();
  CurrentCall::Scope scope(CurrentCall(nullptr, info_, async::kNever, parent));
  EXPECT_FALSE(Send(MakeAtMostOnce()));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kCancelled)));
  EXPECT_THAT(transport_.targets(), IsEmpty());
  EXPECT_TRUE(PeerIsIdle());
  // Messages that do not inherit the end of the inbound call are sent.
  OutgoingRequest independent = MakeRequest();
  independent.inherit_cancellation = false;
  EXPECT_TRUE(Send(std::move(independent)));
}

TEST_F(RequestSenderTest, UnsentRepetitionMayHaveBeenAppliedBefore) {
  OutgoingRequest request = MakeRequest();
  request.attempted = true;
  request.deadline = clock_.Now();
  EXPECT_FALSE(Send(std::move(request)));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

TEST_F(RequestSenderTest, OnlyControlMessagesGoToAPeerThatHasLeft) {
  ASSERT_TRUE(Send(MakeRequest()));
  peer_->MarkLeft(absl::UnavailableError("w1 left"));
  EXPECT_FALSE(Send(MakeRequest()));
  EXPECT_THAT(error_,
              Optional(StatusIs(absl::StatusCode::kUnavailable, "w1 left")));
  OutgoingRequest control = MakeRequest();
  control.control = true;
  EXPECT_TRUE(Send(std::move(control)));
  EXPECT_THAT(transport_.targets(), SizeIs(1));
}

// --- Requests that are sent.

TEST_F(RequestSenderTest, RequestIsHandedToTheConnectionOfThePeer) {
  OutgoingRequest request = MakeRequest();
  request.body = "\x0a\x01x";
  request.tensors = {Floats(3)};
  const async::MonotonicTime deadline = request.deadline;
  EXPECT_TRUE(Send(std::move(request)));
  EXPECT_EQ(num_outcomes_, 0);
  ASSERT_THAT(transport_.targets(), SizeIs(1));
  EXPECT_EQ(transport_.targets()[0].address, "host1:1");
  EXPECT_EQ(transport_.targets()[0].worker, "w1");
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(call->path(), "/test/Path");
  EXPECT_EQ(call->deadline(), deadline);
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  EXPECT_EQ(message->body(), "\x0a\x01x");
  EXPECT_EQ(message->num_tensors(), 1u);
  const auto header = message->ParseRequestHeader();
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->job, "job");
  EXPECT_EQ(header->source_incarnation, Incarnation{7});
  EXPECT_EQ(header->destination_incarnation, Incarnation{8});
  EXPECT_THAT(header->autograd, Eq(std::nullopt));
}

TEST_F(RequestSenderTest, ReplyArrivesWithItsTensors) {
  ASSERT_TRUE(Send(MakeRequest()));
  clock_.AdvanceBy(absl::Seconds(2));
  transport_.TakeCall()->Reply(Encoded("\x0a\x01y", {Floats(3)}));
  ASSERT_NE(reply_, std::nullopt);
  EXPECT_EQ(reply_->message.body(), "\x0a\x01y");
  ASSERT_THAT(reply_->tensors, SizeIs(1));
  EXPECT_EQ(reply_->tensors[0].num_elements(), 3);
  EXPECT_EQ(num_outcomes_, 1);
  EXPECT_EQ(peer_->last_answered(), clock_.Now());
}

TEST_F(RequestSenderTest, ReplyWithManyBytesIsReadOnTheExecutor) {
  ASSERT_TRUE(Send(MakeAtMostOnce()));
  transport_.TakeCall()->Reply(Encoded("", {Floats(17 << 10)}));
  EXPECT_EQ(num_outcomes_, 0);
  // The bytes may be in the memory of the peer, which may not exit yet.
  EXPECT_FALSE(PeerIsIdle());
  EXPECT_EQ(executor_.RunAll(), 1u);
  ASSERT_NE(reply_, std::nullopt);
  ASSERT_THAT(reply_->tensors, SizeIs(1));
  EXPECT_EQ(reply_->tensors[0].num_elements(), 17 << 10);
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, AwaitedReplyWithManyBytesIsReadByTheCaller) {
  const OutgoingRequest request = MakeRequest();
  ASSERT_TRUE(Send(request));
  transport_.TakeCall()->ReplyWhenAwaited(Encoded("", {Floats(17 << 10)}));
  const OutgoingRequest other = MakeRequest();
  other.call->PollUntil([] { return false; });
  EXPECT_FALSE(request.call->IsAwaitedHere());
  EXPECT_EQ(num_outcomes_, 0);
  request.call->PollUntil([] { return false; });
  ASSERT_NE(reply_, std::nullopt);
  ASSERT_THAT(reply_->tensors, SizeIs(1));
  EXPECT_EQ(reply_->tensors[0].num_elements(), 17 << 10);
  EXPECT_EQ(executor_.RunAll(), 0u);
}

TEST_F(RequestSenderTest, AtMostOnceRequestsAreNumberedFromOne) {
  ASSERT_TRUE(Send(MakeAtMostOnce()));
  ASSERT_TRUE(Send(MakeRequest()));
  ASSERT_TRUE(Send(MakeAtMostOnce()));
  EXPECT_EQ(TakeHeader().call_id, 1u);
  EXPECT_EQ(TakeHeader().call_id, 0u);
  EXPECT_EQ(TakeHeader().call_id, 2u);
}

TEST_F(RequestSenderTest, HeaderCarriesAValidTrace) {
  OutgoingRequest traced = MakeRequest();
  traced.trace = {.traceparent = "00-trace-span-01", .tracestate = "a=b"};
  ASSERT_TRUE(Send(traced));
  EXPECT_EQ(TakeHeader().trace, traced.trace);
  OutgoingRequest invalid = MakeRequest();
  invalid.trace = {.traceparent = "not\nprintable", .tracestate = "a=b"};
  ASSERT_TRUE(Send(std::move(invalid)));
  EXPECT_EQ(TakeHeader().trace, TraceContext());
}

TEST_F(RequestSenderTest, AtMostOnceCallKeepsThePeerBusyUntilItEnds) {
  ASSERT_TRUE(Send(MakeRequest()));
  EXPECT_TRUE(PeerIsIdle());
  ASSERT_TRUE(Send(MakeAtMostOnce()));
  EXPECT_FALSE(PeerIsIdle());
  transport_.TakeCall()->Reply(Payload());
  EXPECT_FALSE(PeerIsIdle());
  transport_.TakeCall()->Reply(Payload());
  EXPECT_TRUE(PeerIsIdle());
}

TEST_F(RequestSenderTest, OutcomeArrivesInTheContextOfTheCaller) {
  std::optional<int> label;
  bool inside = false;
  {
    async::TaskLocal<int>::Scope scope(kLabel, 5);
    EXPECT_TRUE(sender_.Send(
        MakeRequest(), [&](const absl::StatusOr<ReceivedMessage>&) {
          if (kLabel.get() != nullptr) label = *kLabel.get();
          inside = AgentState::InsideScope::IsInside(state_.get());
        }));
  }
  transport_.TakeCall()->Reply(Payload());
  EXPECT_THAT(label, Optional(5));
  EXPECT_TRUE(inside);
  EXPECT_FALSE(AgentState::InsideScope::IsInside(state_.get()));
}

// --- Errors of requests that were sent.

TEST_F(RequestSenderTest, RequestThatTheTransportDidNotSendWasNotApplied) {
  SendAndFail(MakeRequest(),
              MarkNotSent(absl::UnavailableError("connection refused")));
  EXPECT_THAT(error_, Optional(StatusIs(
                          absl::StatusCode::kUnavailable,
                          AllOf(HasSubstr("function 'f'"), HasSubstr("'w1'"),
                                HasSubstr("connection refused")))));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  // Another worker that forwards the error would be taken for the sender.
  EXPECT_THAT(error_, Optional(ResultOf(IsNotSent, false)));
}

TEST_F(RequestSenderTest, RequestThatWasSentMayHaveBeenApplied) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kResourceExhausted}) {
    SendAndFail(MakeRequest(), absl::Status(code, "broke"));
    EXPECT_THAT(error_, Optional(StatusIs(code, HasSubstr("function 'f'"))));
    EXPECT_THAT(error_detail(), Optional(Detail(true)));
  }
}

TEST_F(RequestSenderTest, RepetitionThatWasNotSentMayHaveBeenAppliedBefore) {
  OutgoingRequest request = MakeRequest();
  request.attempted = true;
  SendAndFail(std::move(request), MarkNotSent(absl::UnavailableError("gone")));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

TEST_F(RequestSenderTest, UnknownMethodWasNotApplied) {
  SendAndFail(MakeRequest(), absl::UnimplementedError("no such method"));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kUnimplemented)));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
}

TEST_F(RequestSenderTest, ErrorOfTheCalleeIsKeptUnchanged) {
  absl::Status error = absl::CancelledError("the callee's own words");
  SetErrorDetail({.worker = "w5", .incarnation = Incarnation{50}}, error);
  error.SetPayload("test/payload", absl::Cord("kept"));
  SendAndFail(MakeRequest(), error);
  EXPECT_THAT(error_, Optional(error));
}

TEST_F(RequestSenderTest, OtherPayloadsOfAnErrorAreKept) {
  absl::Status error = absl::UnavailableError("broke");
  error.SetPayload("test/payload", absl::Cord("kept"));
  SendAndFail(MakeRequest(), error);
  EXPECT_THAT(error_.value_or(absl::OkStatus()).GetPayload("test/payload"),
              Optional(Eq("kept")));
}

TEST_F(RequestSenderTest, CallThatItsCallerCancelsIsCancelled) {
  OutgoingRequest request = MakeRequest();
  const std::shared_ptr<OutgoingCall> outgoing = request.call;
  ASSERT_TRUE(Send(std::move(request)));
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  outgoing->Cancel();
  EXPECT_TRUE(call->cancelled());
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kCancelled,
                                        HasSubstr("by its caller"))));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

TEST_F(RequestSenderTest, CallInFlightIsCancelledWhenTheAgentStops) {
  OutgoingRequest request = MakeRequest();
  const std::shared_ptr<OutgoingCall> outgoing = request.call;
  ASSERT_TRUE(Send(std::move(request)));
  state_->SetPhase(AgentState::Phase::kStopping);
  transport_.Shutdown();
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kCancelled,
                                        HasSubstr("was shut down"))));
}

TEST_F(RequestSenderTest, CallWhosePeerStopsIsCutOff) {
  SendAndFail(MakeRequest(), absl::CancelledError("transport shut down"));
  EXPECT_THAT(error_,
              Optional(StatusIs(absl::StatusCode::kUnavailable,
                                AllOf(HasSubstr("was cut off"),
                                      HasSubstr("transport shut down")))));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

// Its call has ended when Call returns its id.
TEST_F(RequestSenderTest, CallThatEndsWhileItIsHandedOverIsNotInFlight) {
  ASSERT_THAT(peer_->connection(), IsOk());
  transport_.Shutdown();
  OutgoingRequest request = MakeAtMostOnce();
  const std::shared_ptr<OutgoingCall> outgoing = request.call;
  EXPECT_TRUE(Send(std::move(request)));
  EXPECT_EQ(num_outcomes_, 1);
  EXPECT_TRUE(PeerIsIdle());
  outgoing->PollUntil([] { return false; });
  EXPECT_FALSE(transport_.TakeCall()->awaited());
}

TEST_F(RequestSenderTest, MalformedReplyIsAnInternalError) {
  ASSERT_TRUE(Send(MakeAtMostOnce()));
  clock_.AdvanceBy(absl::Seconds(2));
  transport_.TakeCall()->Reply(Payload("\xff"));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kInternal,
                                        HasSubstr("function 'f'"))));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
  EXPECT_TRUE(PeerIsIdle());
  // It is alive all the same.
  EXPECT_EQ(peer_->last_answered(), clock_.Now());
}

TEST_F(RequestSenderTest, ReplyWhoseTensorsDoNotMatchIsAnInternalError) {
  ASSERT_TRUE(Send(MakeRequest()));
  absl::StatusOr<std::string> bytes = Encoded("", {Floats(3)}).Flatten();
  ASSERT_THAT(bytes, IsOk());
  // The last field has the elements: one byte less of them.
  const size_t size_byte = bytes->size() - 13;
  ASSERT_EQ((*bytes)[size_byte], 12);
  (*bytes)[size_byte] = 11;
  bytes->pop_back();
  transport_.TakeCall()->Reply(Payload(*bytes));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

// --- Counters and observers.

TEST_F(RequestSenderTest, PeerCountsRequestsRepliesAndFailures) {
  const auto totals = [this] { return peer_->counters()->totals(); };
  ASSERT_TRUE(Send(MakeRequest()));
  const std::shared_ptr<FakeCall> answered = transport_.TakeCall();
  EXPECT_EQ(totals().sent, 1u);
  EXPECT_EQ(totals().ended, 0u);
  EXPECT_EQ(totals().bytes_sent, answered->request().size());
  const Payload reply = Encoded("\x0a\x01y");
  answered->Reply(reply);
  EXPECT_EQ(totals().ended, 1u);
  EXPECT_EQ(totals().failed, 0u);
  EXPECT_EQ(totals().bytes_received, reply.size());
  SendAndFail(MakeRequest(), absl::UnavailableError("broke"));
  EXPECT_EQ(totals().sent, 2u);
  EXPECT_EQ(totals().ended, 2u);
  EXPECT_EQ(totals().failed, 1u);
  EXPECT_EQ(totals().bytes_received, reply.size());
  // An error of the callee, and a reply that cannot be read.
  absl::Status error = absl::NotFoundError("callee");
  SetErrorDetail({.worker = "w1"}, error);
  SendAndFail(MakeRequest(), error);
  EXPECT_EQ(totals().failed, 2u);
  ASSERT_TRUE(Send(MakeRequest()));
  transport_.TakeCall()->Reply(Payload("\xff"));
  EXPECT_EQ(totals().ended, 4u);
  EXPECT_EQ(totals().failed, 3u);
}

TEST_F(RequestSenderTest, ObservationGetsTheBytesOfBothMessages) {
  class Bytes final : public CallObserver::Call {
   public:
    explicit Bytes(std::vector<uint64_t>* seen) : seen_(*seen) {}
    void End(const CallEnd& end) override {
      seen_ = {end.request_bytes, end.reply_bytes};
    }

   private:
    std::vector<uint64_t>& seen_;
  };
  std::vector<uint64_t> seen;
  std::vector<std::unique_ptr<CallObserver::Call>> calls;
  calls.push_back(std::make_unique<Bytes>(&seen));
  OutgoingRequest request = MakeRequest();
  request.observation = std::make_shared<CallObservation>(std::move(calls));
  const std::shared_ptr<CallObservation> observation = request.observation;
  ASSERT_TRUE(Send(std::move(request)));
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  const Payload reply = Encoded("\x0a\x01y");
  call->Reply(reply);
  observation->End(absl::OkStatus());
  EXPECT_THAT(seen, ElementsAre(call->request().size(), reply.size()));
  EXPECT_THAT(call->request().size(), Gt(0u));
}

// --- The inbound call in which a request is sent.

TEST_F(RequestSenderTest, CancellationOfTheInboundCallCancelsTheRequest) {
  const auto parent = std::make_shared<Cancellation>();
  CurrentCall::Scope scope(CurrentCall(nullptr, info_, async::kNever, parent));
  ASSERT_TRUE(Send(MakeRequest()));
  const std::shared_ptr<FakeCall> inherits = transport_.TakeCall();
  OutgoingRequest request = MakeRequest();
  request.inherit_cancellation = false;
  ASSERT_TRUE(Send(std::move(request)));
  const std::shared_ptr<FakeCall> independent = transport_.TakeCall();
  parent->Cancel();
  EXPECT_TRUE(inherits->cancelled());
  EXPECT_FALSE(independent->ended());
}

// --- The interceptor.

TEST_F(RequestSenderTest, InterceptorAttachesMetadataAndSeesTheReply) {
  FakeInterceptor interceptor;
  interceptor.on_send = AutogradMetadata{
      .context_id = 3, .message_id = 4, .requires_grad = {true}};
  state_->SetInterceptor(&interceptor);
  OutgoingRequest request = MakeRequest();
  request.intercept_messages = true;
  request.tensors = {Floats(1)};
  ASSERT_TRUE(Send(request));
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  const auto header = message->ParseRequestHeader();
  ASSERT_THAT(header, IsOk());
  ASSERT_NE(header->autograd, std::nullopt);
  EXPECT_EQ(header->autograd->context_id, 3u);
  EXPECT_EQ(header->autograd->message_id, 4u);
  call->Reply(Encoded(
      "", {},
      EncodeReplyHeader(AutogradMetadata{.context_id = 3, .message_id = 9})));
  EXPECT_NE(reply_, std::nullopt);
  EXPECT_THAT(interceptor.received, ElementsAre(9));
  // Only on request.
  request.call = std::make_shared<OutgoingCall>();
  request.intercept_messages = false;
  ASSERT_TRUE(Send(request));
  EXPECT_EQ(interceptor.num_sent, 1);
}

TEST_F(RequestSenderTest, ErrorOfTheInterceptorFailsTheRequest) {
  FakeInterceptor interceptor;
  interceptor.on_send = absl::FailedPreconditionError("no context");
  state_->SetInterceptor(&interceptor);
  OutgoingRequest request = MakeRequest();
  request.intercept_messages = true;
  EXPECT_FALSE(Send(request));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kFailedPrecondition,
                                        "no context")));
  EXPECT_THAT(error_detail(), Optional(Detail(false)));
  EXPECT_THAT(transport_.TakeCall(), IsNull());
}

TEST_F(RequestSenderTest, ReplyThatTheInterceptorRejectsIsAnInternalError) {
  FakeInterceptor interceptor;
  interceptor.on_send = std::nullopt;
  interceptor.on_reply = absl::NotFoundError("no such context");
  state_->SetInterceptor(&interceptor);
  OutgoingRequest request = MakeRequest();
  request.intercept_messages = true;
  ASSERT_TRUE(Send(std::move(request)));
  transport_.TakeCall()->Reply(
      Encoded("", {}, EncodeReplyHeader(AutogradMetadata{.context_id = 3})));
  EXPECT_THAT(error_, Optional(StatusIs(absl::StatusCode::kInternal,
                                        HasSubstr("no such context"))));
  EXPECT_THAT(error_detail(), Optional(Detail(true)));
}

}  // namespace
}  // namespace hawser::rpc
