#include "rpc/agent/outbound/control_sender.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_transport.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::Optional;
using ::testing::SizeIs;

class ControlSenderTest : public testing::Test {
 protected:
  void TearDown() override { transport_.Shutdown(); }

  // Receives the outcome of a message.
  ControlCalls::Done SetOutcome() {
    return [this](absl::Status status) { outcome_ = std::move(status); };
  }

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
  const async::MonotonicTime deadline_ =
      async::AddDelay(clock_.Now(), absl::Seconds(1));
  const std::shared_ptr<Peer> peer_ =
      std::make_shared<Peer>(info_, "", &transport_);
  RequestSender sender_{state_};
  ControlSender control_{state_, &sender_};
  std::optional<absl::Status> outcome_;
};

TEST_F(ControlSenderTest, HeartbeatIsAHeaderWithADeadline) {
  control_.Ping(peer_, deadline_, SetOutcome());
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(call->path(), "/hawser.v1.WorkerService/Heartbeat");
  EXPECT_EQ(call->deadline(), deadline_);
  const auto message = IncomingMessage::Parse(call->request());
  ASSERT_THAT(message, IsOk());
  EXPECT_EQ(message->body(), "");
  EXPECT_EQ(message->num_tensors(), 0u);
  EXPECT_EQ(outcome_, std::nullopt);
  call->Reply(Payload());
  EXPECT_THAT(outcome_, Optional(IsOk()));
}

TEST_F(ControlSenderTest, LeaveNoticeHasAPathOfItsOwn) {
  control_.NotifyLeave(peer_, deadline_, SetOutcome());
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_EQ(call->path(), "/hawser.v1.WorkerService/Leave");
  EXPECT_EQ(call->deadline(), deadline_);
  call->Reply(Payload());
  EXPECT_THAT(outcome_, Optional(IsOk()));
}

TEST_F(ControlSenderTest, ErrorsNameTheMessageAndThePeer) {
  control_.Ping(peer_, deadline_, SetOutcome());
  transport_.TakeCall()->Fail(absl::UnavailableError("refused"));
  EXPECT_THAT(outcome_, Optional(StatusIs(
                            absl::StatusCode::kUnavailable,
                            AllOf(HasSubstr("a heartbeat"), HasSubstr("'w1'"),
                                  HasSubstr("refused")))));
  control_.NotifyLeave(peer_, deadline_, SetOutcome());
  transport_.TakeCall()->Fail(absl::UnavailableError("refused"));
  EXPECT_THAT(outcome_, Optional(StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("a leave notice"))));
}

// PeerMembership tells a rejection by that incarnation from one by another.
TEST_F(ControlSenderTest, ErrorOfThePeerKeepsItsDetail) {
  const ErrorDetail detail{.worker = "w1", .incarnation = Incarnation{9}};
  absl::Status error = absl::FailedPreconditionError("another incarnation");
  SetErrorDetail(detail, error);
  control_.Ping(peer_, deadline_, SetOutcome());
  transport_.TakeCall()->Fail(error);
  ASSERT_THAT(outcome_, Optional(error));
  EXPECT_THAT(GetErrorDetail(*outcome_), Optional(detail));
}

TEST_F(ControlSenderTest, MessagesBehindAClosedCallGateAreCancelled) {
  state_->call_gate().Close();
  control_.Ping(peer_, deadline_, SetOutcome());
  EXPECT_THAT(outcome_, Optional(StatusIs(absl::StatusCode::kCancelled)));
  outcome_.reset();
  control_.NotifyLeave(peer_, deadline_, SetOutcome());
  EXPECT_THAT(outcome_, Optional(StatusIs(absl::StatusCode::kCancelled)));
  EXPECT_THAT(transport_.targets(), SizeIs(0));
}

TEST_F(ControlSenderTest, MessageInFlightIsCancelledWhenTheAgentStops) {
  control_.Ping(peer_, deadline_, SetOutcome());
  state_->SetPhase(AgentState::Phase::kStopping);
  transport_.Shutdown();
  EXPECT_THAT(outcome_, Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(ControlSenderTest, MessagesReachAPeerThatHasLeft) {
  ASSERT_THAT(peer_->connection(), IsOk());
  peer_->MarkLeft(absl::UnavailableError("left"));
  control_.Ping(peer_, deadline_, SetOutcome());
  EXPECT_THAT(transport_.TakeCall(), NotNull());
  // Unlike one that is lost.
  const auto lost = std::make_shared<Peer>(info_, "", &transport_);
  lost->MarkLost(absl::UnavailableError("lost"));
  control_.Ping(lost, deadline_, SetOutcome());
  EXPECT_THAT(transport_.TakeCall(), IsNull());
  EXPECT_THAT(outcome_,
              Optional(StatusIs(absl::StatusCode::kUnavailable, "lost")));
}

TEST_F(ControlSenderTest, MessagesAreNotCountedAsCalls) {
  control_.Ping(peer_, deadline_, SetOutcome());
  EXPECT_EQ(state_->num_calls_made(), 0u);
  EXPECT_EQ(state_->outbound_calls().value(), 0);
  EXPECT_TRUE(peer_->WhenIdle().ready());
  transport_.TakeCall()->Fail(absl::UnavailableError("refused"));
  const PeerTotals totals = peer_->counters()->totals();
  EXPECT_EQ(totals.sent, 0u);
  EXPECT_EQ(totals.ended, 0u);
  EXPECT_EQ(totals.failed, 0u);
}

TEST_F(ControlSenderTest, MessageOutlivesTheInboundCallThatSendsIt) {
  const auto cancellation = std::make_shared<Cancellation>();
  CurrentCall::Scope scope(
      CurrentCall(nullptr, info_, clock_.Now(), cancellation));
  control_.Ping(peer_, deadline_, SetOutcome());
  cancellation->Cancel();
  const std::shared_ptr<FakeCall> call = transport_.TakeCall();
  ASSERT_THAT(call, NotNull());
  EXPECT_FALSE(call->ended());
  EXPECT_EQ(call->deadline(), deadline_);
}

}  // namespace
}  // namespace hawser::rpc
