#include "rpc/agent/outbound/outbound_calls.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_peer_finder.h"
#include "rpc/testing/fakes/fake_transport.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::Optional;
using ::testing::SizeIs;

constexpr MethodName kRead{"hawser.rpc_test.EchoService.Read"};
constexpr MethodName kOnce{"hawser.rpc_test.EchoService.Once"};
constexpr MethodName kUndeclared{"hawser.rpc_test.EchoService.Undeclared"};

Payload Encoded(std::string body) {
  TransferCounters counters;
  absl::StatusOr<Payload> payload =
      EncodeMessage({.body = std::move(body)}, counters);
  EXPECT_THAT(payload, IsOk());
  return payload.ok() ? *std::move(payload) : Payload();
}

// Reply of a function that returns `value`.
Payload ResultOf(int64_t value) {
  Encoder encoder;
  encoder.WriteInt(value);
  return Encoded(EncodeCallResults(encoder.TakeValues()));
}

std::string EchoBody(std::string_view text) {
  rpc_test::EchoRequest request;
  request.set_text(std::string(text));
  return request.SerializeAsString();
}

// Records the calls of one client.
class RecordingObserver final : public CallObserver {
 public:
  std::unique_ptr<Call> Begin(const CallStart& start) override {
    EXPECT_EQ(start.side, CallStart::Side::kClient);
    begun.push_back(std::string(start.method) + "/" +
                    std::string(start.function) + "@" + start.peer.name);
    seen_trace = *start.trace;
    if (replacement.has_value()) *start.trace = *replacement;
    return std::make_unique<Recorded>(this);
  }

  std::optional<TraceContext> replacement;
  TraceContext seen_trace;
  std::vector<std::string> begun;
  std::vector<absl::Status> ended;
  uint64_t request_bytes = 0;
  uint64_t reply_bytes = 0;

 private:
  class Recorded final : public Call {
   public:
    explicit Recorded(RecordingObserver* observer) : observer_(*observer) {}
    void End(const CallEnd& end) override {
      observer_.ended.push_back(end.status);
      observer_.request_bytes = end.request_bytes;
      observer_.reply_bytes = end.reply_bytes;
    }

   private:
    RecordingObserver& observer_;
  };
};

class OutboundCallsTest : public testing::Test {
 protected:
  OutboundCallsTest() { finder_.Add(peer_); }

  // As the agent stops.
  void TearDown() override {
    state_->SetPhase(AgentState::Phase::kStopping);
    transport_.Shutdown();
    calls_.AbandonRetries();
    state_->gate().Close();
  }

  // Calls function "f" with one integer, and keeps its outcome in `result_`.
  void CallFunction(const Destination& to, const CallOptions& options = {}) {
    result_.reset();
    calls_.CallFunction(
        outgoing_, to, options, "f", "int64(int64)",
        [this](Encoder& encoder) {
          encoder.WriteInt(3);
          return encode_status_;
        },
        [this](absl::StatusOr<Decoder*> reply) {
          in_flight_at_end_ = state_->outbound_calls().value();
          ends_seen_ = observer_->ended.size();
          if (!reply.ok()) {
            result_ = reply.status();
          } else {
            result_ = (*reply)->ReadInt();
          }
        });
  }

  async::Future<RawMessage> CallMethod(const MethodName& method,
                                       const MethodCallOptions& options = {},
                                       const Destination& to = "w1") {
    return calls_.CallMethod(to, method, RawMessage{EchoBody("hi"), {}},
                             options);
  }

  // Advances the time by `wait`, when the next attempt is due, and returns it;
  // null, and a failure, if it came earlier or does not come.
  std::shared_ptr<FakeCall> AwaitAttempt(absl::Duration wait) {
    clock_.AdvanceBy(wait - absl::Nanoseconds(1));
    executor_.RunAll();
    EXPECT_EQ(transport_.num_calls(), 0u) << "before " << wait;
    clock_.AdvanceBy(absl::Nanoseconds(1));
    executor_.RunAll();
    EXPECT_EQ(transport_.num_calls(), 1u) << "after " << wait;
    return transport_.TakeCall();
  }

  // The trace in the header of a request.
  static TraceContext TraceOf(const FakeCall& call) {
    const auto message = IncomingMessage::Parse(call.request());
    EXPECT_THAT(message, IsOk());
    if (!message.ok()) return {};
    const auto header = message->ParseRequestHeader();
    EXPECT_THAT(header, IsOk());
    return header.ok() ? header->trace : TraceContext();
  }

  static ErrorDetail Detail(const WorkerInfo& worker, bool maybe_applied) {
    return {.worker = worker.name,
            .incarnation = worker.incarnation,
            .maybe_applied = maybe_applied};
  }

  const WorkerInfo self_{.name = "w0",
                         .id = WorkerId(0),
                         .incarnation = Incarnation{7},
                         .address = "host0:1"};
  const WorkerInfo info_{.name = "w1",
                         .id = WorkerId(1),
                         .incarnation = Incarnation{8},
                         .address = "host1:1"};
  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  FakeTransport transport_;
  const std::shared_ptr<RecordingObserver> observer_ =
      std::make_shared<RecordingObserver>();
  const std::shared_ptr<AgentState> state_ = std::make_shared<AgentState>(
      AgentState::Options{.self = self_,
                          .job = "job",
                          .clock = &clock_,
                          .executor = &executor_,
                          .control_executor = &executor_,
                          .observers = {observer_}});
  const std::shared_ptr<Peer> peer_ =
      std::make_shared<Peer>(info_, "", &transport_);
  FakePeerFinder finder_;
  RequestSender sender_{state_};
  OutboundCalls calls_{state_, &sender_, &finder_};
  const std::shared_ptr<OutgoingCall> outgoing_ =
      std::make_shared<OutgoingCall>();
  absl::Status encode_status_;
  // The outcome of CallFunction, and the counts when it came.
  std::optional<absl::StatusOr<int64_t>> result_;
  int64_t in_flight_at_end_ = 0;
  size_t ends_seen_ = 0;
};

// --- Calls of functions.

TEST_F(OutboundCallsTest, FunctionGetsItsArgumentsAndTheCallerItsResult) {
  CallFunction("w1", {.timeout = absl::Seconds(5)});
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(call->path(), "/hawser.v1.WorkerService/Call");
  const async::MonotonicTime deadline =
      async::AddDelay(clock_.Now(), absl::Seconds(5));
  EXPECT_EQ(call->deadline(), deadline);
  EXPECT_THAT(finder_.last_deadline(), Optional(deadline));
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  const auto body = ParseCallBody(message->body());
  ASSERT_THAT(body, IsOk());
  EXPECT_EQ(body->function, "f");
  EXPECT_EQ(body->signature, "int64(int64)");
  Decoder arguments(nullptr, nullptr, body->arguments, {});
  EXPECT_THAT(arguments.ReadInt(), IsOkAndHolds(3));
  // It must not run twice.
  const auto header = message->ParseRequestHeader();
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->call_id, 1u);
  EXPECT_EQ(result_, std::nullopt);
  call->Reply(ResultOf(-4));
  EXPECT_THAT(result_, Optional(IsOkAndHolds(-4)));
}

TEST_F(OutboundCallsTest, CallsAreCountedUntilTheirCallbacksHaveRun) {
  CallFunction("w1");
  EXPECT_EQ(state_->num_calls_made(), 1u);
  EXPECT_EQ(state_->outbound_calls().value(), 1);
  transport_.TakeCall()->Reply(ResultOf(1));
  EXPECT_EQ(in_flight_at_end_, 1);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
  const async::Future<RawMessage> future = CallMethod(kRead);
  EXPECT_EQ(state_->num_calls_made(), 2u);
  EXPECT_EQ(state_->outbound_calls().value(), 1);
  int64_t in_flight = 0;
  future.OnReady([&](const absl::StatusOr<RawMessage>&) {
    in_flight = state_->outbound_calls().value();
  });
  transport_.TakeCall()->Reply(Encoded(""));
  EXPECT_EQ(in_flight, 1);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
}

TEST_F(OutboundCallsTest, UnknownWorkerIsNotFound) {
  CallFunction("w9");
  ASSERT_THAT(result_,
              Optional(StatusIs(absl::StatusCode::kNotFound, HasSubstr("w9"))));
  EXPECT_THAT(GetErrorDetail(result_->status()),
              Optional(ErrorDetail{.worker = "w9"}));
  const async::Future<RawMessage> future = CallMethod(kRead, {}, "w9");
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kNotFound));
  // Such calls have no peer: they are neither counted nor observed.
  EXPECT_EQ(state_->num_calls_made(), 0u);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
  EXPECT_THAT(observer_->begun, IsEmpty());
  EXPECT_THAT(finder_.watched(), IsEmpty());
}

TEST_F(OutboundCallsTest, CallsBehindAClosedGateAreNotSent) {
  state_->call_gate().Close();
  CallFunction("w1");
  ASSERT_THAT(result_, Optional(StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("is stopping"))));
  EXPECT_THAT(GetErrorDetail(result_->status()),
              Optional(Detail(self_, false)));
  const async::Future<RawMessage> future = CallMethod(kRead);
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("is stopping")));
  EXPECT_THAT(GetErrorDetail(future.result().status()),
              Optional(Detail(self_, false)));
  EXPECT_EQ(finder_.last_deadline(), std::nullopt);
  EXPECT_THAT(transport_.TakeCall(), IsNull());
}

TEST_F(OutboundCallsTest, FencedWorkerDoesNotCall) {
  state_->SetFenced();
  CallFunction("w1");
  EXPECT_THAT(result_,
              Optional(StatusIs(absl::StatusCode::kFailedPrecondition)));
  const async::Future<RawMessage> future = CallMethod(kRead);
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(transport_.TakeCall(), IsNull());
}

TEST_F(OutboundCallsTest, InvalidRequestsNameTheirDestination) {
  CallFunction("w1", {.timeout = -absl::Seconds(1)});
  ASSERT_THAT(result_, Optional(StatusIs(absl::StatusCode::kInvalidArgument)));
  EXPECT_THAT(GetErrorDetail(result_->status()),
              Optional(ErrorDetail{.worker = "w1"}));
  encode_status_ = absl::InvalidArgumentError("bad argument");
  CallFunction("w1");
  ASSERT_THAT(result_, Optional(StatusIs(absl::StatusCode::kInvalidArgument,
                                         "bad argument")));
  EXPECT_THAT(GetErrorDetail(result_->status()),
              Optional(Detail(info_, false)));
  const async::Future<RawMessage> future = CallMethod(kUndeclared);
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(state_->num_calls_made(), 0u);
}

TEST_F(OutboundCallsTest, PeerIsWatchedOnceARequestWasSent) {
  encode_status_ = absl::InvalidArgumentError("bad argument");
  CallFunction("w1");
  encode_status_ = absl::OkStatus();
  CallFunction("w1", {.timeout = absl::ZeroDuration()});
  EXPECT_THAT(result_, Optional(StatusIs(absl::StatusCode::kDeadlineExceeded)));
  EXPECT_TRUE(CallMethod(kRead, {.timeout = absl::ZeroDuration()}).ready());
  EXPECT_THAT(finder_.watched(), IsEmpty());
  CallFunction("w1");
  EXPECT_THAT(finder_.watched(), ElementsAre(peer_));
  const async::Future<RawMessage> future = CallMethod(kRead);
  EXPECT_THAT(finder_.watched(), ElementsAre(peer_, peer_));
  // Calls that were not sent have ended.
  EXPECT_EQ(state_->outbound_calls().value(), 2);
}

TEST_F(OutboundCallsTest, FunctionIsCalledOnce) {
  CallFunction("w1");
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  ASSERT_THAT(result_, Optional(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_THAT(GetErrorDetail(result_->status()), Optional(Detail(info_, true)));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, CancellingAFunctionCallCancelsItsRequest) {
  CallFunction("w1");
  outgoing_->Cancel();
  EXPECT_TRUE(transport_.TakeCall()->cancelled());
  EXPECT_THAT(result_, Optional(StatusIs(absl::StatusCode::kCancelled)));
}

// --- Calls of methods.

TEST_F(OutboundCallsTest, MethodGetsItsRequestAndTheCallerItsReply) {
  const async::Future<RawMessage> future =
      CallMethod(kRead, {.timeout = absl::Seconds(5)});
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(call->path(), "/hawser.rpc_test.EchoService/Read");
  EXPECT_EQ(call->deadline(), async::AddDelay(clock_.Now(), absl::Seconds(5)));
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  EXPECT_EQ(message->body(), EchoBody("hi"));
  EXPECT_FALSE(future.ready());
  call->Reply(Encoded(EchoBody("ho")));
  ASSERT_TRUE(future.ready());
  ASSERT_THAT(future.result(), IsOk());
  EXPECT_EQ(future.result()->body, EchoBody("ho"));
  EXPECT_FALSE(call->awaited());
}

TEST_F(OutboundCallsTest, MethodIsRepeatedWithIncreasingBackoff) {
  const async::Future<RawMessage> future =
      CallMethod(kRead, {.timeout = kNoTimeout});
  std::shared_ptr<FakeCall> call = transport_.TakeCall();
  for (const int ms : {50, 100, 200, 400, 800, 1600, 2000, 2000}) {
    ASSERT_THAT(call, NotNull());
    EXPECT_EQ(call->deadline(), async::kNever);
    call->Fail(absl::UnavailableError("broke"));
    EXPECT_FALSE(future.ready());
    call = AwaitAttempt(absl::Milliseconds(ms));
  }
  ASSERT_THAT(call, NotNull());
  // Each attempt sends the whole request.
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  EXPECT_EQ(message->body(), EchoBody("hi"));
  call->Reply(Encoded(""));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), IsOk());
  EXPECT_EQ(state_->num_calls_made(), 1u);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
}

TEST_F(OutboundCallsTest, MethodThatMustNotRunTwiceIsNotRepeated) {
  const async::Future<RawMessage> future = CallMethod(kOnce);
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(GetErrorDetail(future.result().status()),
              Optional(Detail(info_, true)));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, ErrorsThatARepetitionDoesNotMendEndTheCall) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kAborted,
        absl::StatusCode::kResourceExhausted}) {
    const async::Future<RawMessage> future = CallMethod(kRead);
    transport_.TakeCall()->Fail(absl::Status(code, "test"));
    ASSERT_TRUE(future.ready());
    EXPECT_THAT(future.result(), StatusIs(code));
  }
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, CallOfALostPeerIsNotRepeated) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  peer_->MarkLost(absl::UnavailableError("w1 was lost"));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("w1 was lost")));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, PeerLostDuringTheBackoffEndsTheCall) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  peer_->MarkLost(absl::UnavailableError("w1 was lost"));
  EXPECT_FALSE(future.ready());
  clock_.AdvanceBy(absl::Milliseconds(50));
  executor_.RunAll();
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("w1 was lost")));
  // The attempt before the loss may have run.
  EXPECT_THAT(GetErrorDetail(future.result().status()),
              Optional(Detail(info_, true)));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, CallFollowsItsPeerToItsNextIncarnation) {
  const async::Future<RawMessage> future =
      CallMethod(kRead, {.follow_restarts = true});
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  peer_->MarkLost(absl::UnavailableError("it ended"));
  // Nobody has the name yet.
  clock_.AdvanceBy(absl::Milliseconds(50));
  executor_.RunAll();
  EXPECT_EQ(transport_.num_calls(), 0u);
  EXPECT_FALSE(future.ready());
  WorkerInfo successor = info_;
  successor.incarnation = Incarnation{9};
  const auto next = std::make_shared<Peer>(successor, "", &transport_);
  finder_.Replace(next);
  const std::shared_ptr<FakeCall> call = AwaitAttempt(absl::Milliseconds(100));
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(finder_.watched().back(), next);
  call->Reply(Encoded(""));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), IsOk());
}

// The successor listens at the same address before the loss is known.
TEST_F(OutboundCallsTest, RejectionBySuccessorIsFollowed) {
  for (bool follows : {false, true}) {
    const async::Future<RawMessage> future =
        CallMethod(kRead, {.follow_restarts = follows});
    WorkerInfo successor = info_;
    successor.incarnation = Incarnation{9};
    transport_.TakeCall()->Fail(WithErrorDetail(
        absl::FailedPreconditionError("not for this incarnation"), successor,
        /*maybe_applied=*/false));
    EXPECT_EQ(future.ready(), !follows);
    if (!follows) continue;
    finder_.Replace(std::make_shared<Peer>(successor, "", &transport_));
    AwaitAttempt(absl::Milliseconds(50))->Reply(Encoded(""));
    ASSERT_TRUE(future.ready());
    EXPECT_THAT(future.result(), IsOk());
  }
}

TEST_F(OutboundCallsTest, FencedWorkerDoesNotRepeatCalls) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  state_->SetFenced();
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, AttemptEndsAfterItsTimeoutAndIsRepeated) {
  const async::MonotonicTime start = clock_.Now();
  const async::Future<RawMessage> future =
      CallMethod(kRead, {.timeout = absl::Milliseconds(1500),
                         .attempt_timeout = absl::Seconds(1)});
  std::shared_ptr<FakeCall> call = transport_.TakeCall();
  EXPECT_EQ(call->deadline(), async::AddDelay(start, absl::Seconds(1)));
  clock_.AdvanceBy(absl::Seconds(1));
  call->Fail(absl::DeadlineExceededError("silent"));
  EXPECT_FALSE(future.ready());
  call = AwaitAttempt(absl::Milliseconds(50));
  ASSERT_THAT(call, NotNull());
  // The last attempt ends with the call.
  EXPECT_EQ(call->deadline(), async::AddDelay(start, absl::Milliseconds(1500)));
  clock_.AdvanceBy(absl::Milliseconds(450));
  call->Fail(absl::DeadlineExceededError("silent"));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(OutboundCallsTest, TimeoutOfAttemptsIsForMethodsThatAreRepeated) {
  const async::Future<RawMessage> future = CallMethod(
      kOnce,
      {.timeout = absl::Seconds(5), .attempt_timeout = absl::Seconds(1)});
  EXPECT_EQ(transport_.TakeCall()->deadline(),
            async::AddDelay(clock_.Now(), absl::Seconds(5)));
}

TEST_F(OutboundCallsTest, CallIsNotRepeatedBeyondItsDeadline) {
  const async::Future<RawMessage> future =
      CallMethod(kRead, {.timeout = absl::Milliseconds(150)});
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  const std::shared_ptr<FakeCall> second = AwaitAttempt(absl::Milliseconds(50));
  ASSERT_THAT(second, NotNull());
  // The next would begin when the deadline passes.
  second->Fail(absl::UnavailableError("broke again"));
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("broke again")));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(OutboundCallsTest, AbandonedRetriesAreCancelled) {
  const async::Future<RawMessage> waiting = CallMethod(kRead);
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  EXPECT_FALSE(waiting.ready());
  calls_.AbandonRetries();
  ASSERT_TRUE(waiting.ready());
  EXPECT_THAT(waiting.result(), StatusIs(absl::StatusCode::kCancelled,
                                         HasSubstr("EchoService.Read")));
  EXPECT_THAT(GetErrorDetail(waiting.result().status()),
              Optional(Detail(info_, true)));
  EXPECT_EQ(state_->outbound_calls().value(), 0);
  ASSERT_THAT(observer_->ended, SizeIs(1));
  EXPECT_THAT(observer_->ended[0], StatusIs(absl::StatusCode::kCancelled));
  // Nothing is left for a second call, nor behind the closed gate.
  calls_.AbandonRetries();
  EXPECT_THAT(observer_->ended, SizeIs(1));
  state_->gate().Close();
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  EXPECT_THAT(transport_.TakeCall(), IsNull());
}

TEST_F(OutboundCallsTest, CancelledFutureCancelsTheAttemptInFlight) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  EXPECT_TRUE(future.Cancel());
  EXPECT_TRUE(call->cancelled());
  EXPECT_THAT(future.result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(clock_.num_timers(), 0u);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
}

TEST_F(OutboundCallsTest, CallCancelledDuringTheBackoffIsNotRepeated) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  transport_.TakeCall()->Fail(absl::UnavailableError("broke"));
  EXPECT_TRUE(future.Cancel());
  clock_.AdvanceBy(absl::Milliseconds(50));
  executor_.RunAll();
  EXPECT_THAT(transport_.TakeCall(), IsNull());
  EXPECT_EQ(clock_.num_timers(), 0u);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
  ASSERT_THAT(observer_->ended, SizeIs(1));
  EXPECT_THAT(observer_->ended[0], StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(OutboundCallsTest, WaitingCallerWorksForTheTransport) {
  async::Future<RawMessage> future = CallMethod(kRead);
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  call->ReplyWhenAwaited(Encoded("\x0a\x01y"));
  EXPECT_FALSE(future.ready());
  const absl::StatusOr<RawMessage> reply = std::move(future).Wait();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, "\x0a\x01y");
  EXPECT_TRUE(call->awaited());
}

// --- Observers and traces.

TEST_F(OutboundCallsTest, ObserverSeesAFunctionCallEndBeforeItsCaller) {
  CallFunction("w1");
  EXPECT_THAT(observer_->begun,
              ElementsAre("hawser.v1.WorkerService.Call/f@w1"));
  EXPECT_THAT(observer_->ended, IsEmpty());
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  const Payload reply = ResultOf(1);
  call->Reply(reply);
  EXPECT_THAT(observer_->ended, ElementsAre(IsOk()));
  EXPECT_EQ(ends_seen_, 1u);
  EXPECT_EQ(observer_->request_bytes, call->request().size());
  EXPECT_EQ(observer_->reply_bytes, reply.size());
}

TEST_F(OutboundCallsTest, ObserverSeesOneMethodCallWithAllItsAttempts) {
  const async::Future<RawMessage> future = CallMethod(kRead);
  size_t ends_seen = 0;
  future.OnReady([&](const absl::StatusOr<RawMessage>&) {
    ends_seen = observer_->ended.size();
  });
  const std::shared_ptr<FakeCall> first = transport_.TakeCall();
  first->Fail(absl::UnavailableError("broke"));
  const std::shared_ptr<FakeCall> second = AwaitAttempt(absl::Milliseconds(50));
  ASSERT_THAT(second, NotNull());
  const Payload reply = Encoded(EchoBody("ho"));
  second->Reply(reply);
  EXPECT_THAT(observer_->begun,
              ElementsAre("hawser.rpc_test.EchoService.Read/@w1"));
  EXPECT_THAT(observer_->ended, ElementsAre(IsOk()));
  EXPECT_EQ(ends_seen, 1u);
  EXPECT_EQ(observer_->request_bytes,
            first->request().size() + second->request().size());
  EXPECT_EQ(observer_->reply_bytes, reply.size());
}

TEST_F(OutboundCallsTest, ObserverSeesTheErrorOfACallThatWasNotSent) {
  CallFunction("w1", {.timeout = absl::ZeroDuration()});
  EXPECT_THAT(observer_->ended,
              ElementsAre(StatusIs(absl::StatusCode::kDeadlineExceeded)));
  EXPECT_EQ(observer_->request_bytes, 0u);
}

TEST_F(OutboundCallsTest, TraceOfTheInboundCallTravels) {
  const TraceContext trace{.traceparent = "00-t-s-01", .tracestate = "a=b"};
  CurrentCall::Scope scope(CurrentCall(
      nullptr, info_, async::kNever, std::make_shared<Cancellation>(), trace));
  CallFunction("w1");
  EXPECT_EQ(TraceOf(*transport_.TakeCall()), trace);
  EXPECT_EQ(observer_->seen_trace, trace);
  const async::Future<RawMessage> future = CallMethod(kRead);
  const std::shared_ptr<FakeCall> first = transport_.TakeCall();
  EXPECT_EQ(TraceOf(*first), trace);
  first->Fail(absl::UnavailableError("broke"));
  const std::shared_ptr<FakeCall> second = AwaitAttempt(absl::Milliseconds(50));
  ASSERT_THAT(second, NotNull());
  EXPECT_EQ(TraceOf(*second), trace);
}

TEST_F(OutboundCallsTest, ObserverReplacesTheTrace) {
  const TraceContext replacement{.traceparent = "00-t-child-01"};
  observer_->replacement = replacement;
  CallFunction("w1");
  EXPECT_EQ(TraceOf(*transport_.TakeCall()), replacement);
  const async::Future<RawMessage> future = CallMethod(kRead);
  EXPECT_EQ(TraceOf(*transport_.TakeCall()), replacement);
}

TEST_F(OutboundCallsTest, CallsInheritTheEndOfTheInboundCallUnlessToldNotTo) {
  const auto cancellation = std::make_shared<Cancellation>();
  const async::MonotonicTime earlier =
      async::AddDelay(clock_.Now(), absl::Seconds(1));
  CurrentCall::Scope scope(CurrentCall(nullptr, info_, earlier, cancellation));
  CallFunction("w1");
  const std::shared_ptr<FakeCall> function = transport_.TakeCall();
  const async::Future<RawMessage> future = CallMethod(kRead);
  const std::shared_ptr<FakeCall> method = transport_.TakeCall();
  const async::Future<RawMessage> other =
      CallMethod(kRead, {.inherit_deadline = false});
  const std::shared_ptr<FakeCall> independent = transport_.TakeCall();
  EXPECT_EQ(function->deadline(), earlier);
  EXPECT_EQ(method->deadline(), earlier);
  EXPECT_GT(independent->deadline(), earlier);
  cancellation->Cancel();
  EXPECT_TRUE(function->cancelled());
  EXPECT_TRUE(method->cancelled());
  EXPECT_FALSE(independent->ended());
}

}  // namespace
}  // namespace hawser::rpc
