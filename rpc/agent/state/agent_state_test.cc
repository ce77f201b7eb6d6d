#include "rpc/agent/state/agent_state.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using Phase = AgentState::Phase;

// Runs `action` on destruction, unless it was moved from.
class OnDestruction {
 public:
  explicit OnDestruction(absl::AnyInvocable<void()> action)
      : action_(std::move(action)) {}
  OnDestruction(OnDestruction&& other) noexcept
      : action_(std::exchange(other.action_, nullptr)) {}
  ~OnDestruction() {
    if (action_ != nullptr) action_();
  }

 private:
  absl::AnyInvocable<void()> action_;
};

class AgentStateTest : public testing::Test {
 protected:
  std::shared_ptr<AgentState> MakeState() {
    return std::make_shared<AgentState>(
        AgentState::Options{.self = self_,
                            .job = "job",
                            .clock = &clock_,
                            .executor = &executor_,
                            .control_executor = &executor_});
  }

  const WorkerInfo self_{.name = "w0",
                         .id = WorkerId(0),
                         .incarnation = Incarnation{7},
                         .address = "host0:1"};
  // Of a call that did not leave this worker.
  const ErrorDetail not_sent_{
      .worker = "w0", .incarnation = Incarnation{7}, .maybe_applied = false};
  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  const std::shared_ptr<AgentState> state_ = MakeState();
};

TEST_F(AgentStateTest, RunsUntilItStops) {
  EXPECT_EQ(state_->phase(), Phase::kNew);
  for (const Phase phase : {Phase::kNew, Phase::kRunning, Phase::kLeaving}) {
    state_->SetPhase(phase);
    EXPECT_THAT(state_->CheckRunning(), IsOk());
    EXPECT_THAT(state_->CheckMayCall(), IsOk());
  }
}

TEST_F(AgentStateTest, CallsWhileItStopsAreUnavailable) {
  state_->SetPhase(Phase::kStopping);
  const auto stopping =
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("'w0'"), HasSubstr("is stopping")));
  EXPECT_THAT(state_->CheckRunning(), stopping);
  EXPECT_THAT(state_->CheckMayCall(), stopping);
  EXPECT_THAT(state_->CallGateClosed(), stopping);
}

TEST_F(AgentStateTest, CallsAfterShutdownFail) {
  state_->SetPhase(Phase::kStopped);
  const auto stopped =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("'w0'"), HasSubstr("was shut down")));
  EXPECT_THAT(state_->CheckRunning(), stopped);
  EXPECT_THAT(state_->CheckMayCall(), stopped);
  EXPECT_THAT(state_->CallGateClosed(), stopped);
}

TEST_F(AgentStateTest, CallsOfAFencedWorkerFail) {
  state_->SetFenced();
  for (const Phase phase : {Phase::kNew, Phase::kRunning, Phase::kLeaving}) {
    state_->SetPhase(phase);
    const auto fenced =
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr("'w0'"), HasSubstr("must restart")));
    EXPECT_THAT(state_->CheckRunning(), fenced);
    EXPECT_THAT(state_->CheckMayCall(), fenced);
    EXPECT_THAT(state_->CallGateClosed(), fenced);
  }
  // The phase has precedence: the process is on its way out.
  state_->SetPhase(Phase::kStopping);
  EXPECT_THAT(state_->CheckRunning(), StatusIs(absl::StatusCode::kUnavailable));
  state_->SetPhase(Phase::kStopped);
  EXPECT_THAT(state_->CheckRunning(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was shut down")));
}

TEST_F(AgentStateTest, ClosedCallGateOfARunningAgentIsUnavailable) {
  state_->SetPhase(Phase::kRunning);
  EXPECT_THAT(state_->CallGateClosed(), StatusIs(absl::StatusCode::kUnavailable,
                                                 HasSubstr("is stopping")));
}

TEST_F(AgentStateTest, ErrorsOfCallsNameThisWorkerAndAreNotApplied) {
  EXPECT_THAT(GetErrorDetail(state_->CallGateClosed()), Optional(not_sent_));
  state_->SetFenced();
  EXPECT_THAT(GetErrorDetail(state_->CheckMayCall()), Optional(not_sent_));
  for (const Phase phase : {Phase::kStopping, Phase::kStopped}) {
    state_->SetPhase(phase);
    EXPECT_THAT(GetErrorDetail(state_->CheckRunning()), Eq(std::nullopt));
    EXPECT_THAT(GetErrorDetail(state_->CheckMayCall()), Optional(not_sent_));
    EXPECT_THAT(GetErrorDetail(state_->CallGateClosed()), Optional(not_sent_));
  }
}

TEST_F(AgentStateTest, LeavesOnceAndOnlyWhileItRuns) {
  for (const Phase phase :
       {Phase::kNew, Phase::kLeaving, Phase::kStopping, Phase::kStopped}) {
    state_->SetPhase(phase);
    EXPECT_FALSE(state_->BeginLeaving());
    EXPECT_EQ(state_->phase(), phase);
  }
  state_->SetPhase(Phase::kRunning);
  EXPECT_TRUE(state_->BeginLeaving());
  EXPECT_EQ(state_->phase(), Phase::kLeaving);
  EXPECT_FALSE(state_->BeginLeaving());
}

TEST_F(AgentStateTest, PostedActionRunsInsideThisAgentOnly) {
  const std::shared_ptr<AgentState> other = MakeState();
  int runs = 0;
  state_->Post(executor_, [&] {
    ++runs;
    EXPECT_TRUE(AgentState::InsideScope::IsInside(state_.get()));
    EXPECT_FALSE(AgentState::InsideScope::IsInside(other.get()));
    {
      AgentState::InsideScope inside(other.get());
      EXPECT_TRUE(AgentState::InsideScope::IsInside(other.get()));
    }
    EXPECT_TRUE(AgentState::InsideScope::IsInside(state_.get()));
  });
  EXPECT_EQ(runs, 0);
  executor_.RunAll();
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(AgentState::InsideScope::IsInside(state_.get()));
}

TEST_F(AgentStateTest, PostedActionIsDestroyedInsideTheAgent) {
  std::optional<bool> inside;
  state_->Post(executor_,
               [probe = OnDestruction([&] {
                  inside = AgentState::InsideScope::IsInside(state_.get());
                })] {});
  executor_.RunAll();
  EXPECT_THAT(inside, Optional(true));
}

TEST_F(AgentStateTest, ActionBehindAClosedGateIsDestroyedWithoutRunning) {
  bool ran = false;
  int destructions = 0;
  state_->Post(executor_, [&, probe = OnDestruction([&] { ++destructions; })] {
    ran = true;
  });
  state_->gate().Close();
  EXPECT_EQ(destructions, 0);
  executor_.RunAll();
  EXPECT_FALSE(ran);
  EXPECT_EQ(destructions, 1);
}

TEST_F(AgentStateTest, PostedActionKeepsTheStateAlive) {
  std::shared_ptr<AgentState> state = MakeState();
  const std::weak_ptr<AgentState> weak = state;
  bool ran = false;
  state->Post(executor_, [&] { ran = true; });
  state.reset();
  executor_.RunAll();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(weak.expired());
}

TEST_F(AgentStateTest, CountsOutboundCallsEverMadeAndInFlight) {
  state_->BeginOutboundCall();
  state_->BeginOutboundCall();
  EXPECT_EQ(state_->num_calls_made(), 2u);
  EXPECT_EQ(state_->outbound_calls().value(), 2);
  EXPECT_EQ(state_->inbound_calls().value(), 0);
  state_->outbound_calls().End();
  EXPECT_EQ(state_->num_calls_made(), 2u);
  EXPECT_EQ(state_->outbound_calls().value(), 1);
}

TEST_F(AgentStateTest, MeasuresTimeByItsClock) {
  const async::MonotonicTime deadline =
      async::AddDelay(clock_.Now(), absl::Seconds(3));
  clock_.AdvanceBy(absl::Seconds(1));
  EXPECT_EQ(state_->TimeUntil(deadline), absl::Seconds(2));
  EXPECT_EQ(state_->TimeUntil(async::kNever), absl::InfiniteDuration());
}

}  // namespace
}  // namespace hawser::rpc
