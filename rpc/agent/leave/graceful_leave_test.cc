#include "rpc/agent/leave/graceful_leave.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/task_local.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/leaving_worker.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kTimeout = LeavingWorker::kTimeout;

constinit const async::TaskLocal<int> kMark;

class DynamicLeaveTest : public testing::Test {
 protected:
  // Runs all that is ready.
  void Run() { worker_.control.RunAll(); }
  void PassDeadline() {
    clock_.AdvanceBy(kTimeout);
    Run();
  }

  async::SimulatedClock clock_;
  store::HashStore store_{{.clock = &clock_}};
  LeavingWorker worker_{0, std::nullopt, &store_, &clock_};
};

TEST_F(DynamicLeaveTest, StepsRunInOrder) {
  async::Promise<void> first, second, notified;
  worker_.first.drained = first.future();
  worker_.second.drained = second.future();
  worker_.member.SetNotify(notified.future());
  worker_.BeginCall();
  worker_.state->inbound_calls().Begin();
  const async::MonotonicTime deadline = async::AddDelay(clock_.Now(), kTimeout);
  worker_.leave->Begin();
  Run();
  EXPECT_THAT(worker_.events, IsEmpty());

  worker_.EndCall();
  Run();
  EXPECT_THAT(worker_.events, ElementsAre("drain second"));
  EXPECT_EQ(worker_.second.deadline, deadline);
  second.Set(absl::OkStatus());
  // Steps run on the control executor.
  EXPECT_THAT(worker_.events, ElementsAre("drain second"));
  Run();
  EXPECT_THAT(worker_.events, ElementsAre("drain second", "drain first"));

  worker_.events.clear();
  worker_.BeginCall();
  first.Set(absl::OkStatus());
  Run();
  EXPECT_THAT(worker_.events, IsEmpty());
  EXPECT_EQ(worker_.state->phase(), AgentState::Phase::kRunning);
  worker_.EndCall();
  Run();
  EXPECT_THAT(worker_.events,
              ElementsAre("withdraw", "stop monitoring", "notify"));
  EXPECT_EQ(worker_.state->phase(), AgentState::Phase::kLeaving);
  EXPECT_EQ(worker_.member.notify_deadline, deadline);

  worker_.events.clear();
  notified.Set(absl::OkStatus());
  Run();
  EXPECT_THAT(worker_.events, ElementsAre("left second", "left first"));
  EXPECT_FALSE(worker_.ended());
  worker_.state->inbound_calls().End();
  Run();
  EXPECT_THAT(worker_.result(), IsOk());
  EXPECT_EQ(worker_.executor.num_queued(), 0u);
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(DynamicLeaveTest, OwnCallsThatDoNotEndEndTheLeave) {
  worker_.BeginCall();
  worker_.BeginCall();
  worker_.leave->Begin();
  Run();
  clock_.AdvanceBy(kTimeout - absl::Milliseconds(1));
  Run();
  EXPECT_FALSE(worker_.ended());
  clock_.AdvanceBy(absl::Milliseconds(1));
  Run();
  EXPECT_THAT(
      worker_.result(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               absl::StrCat("graceful shutdown of ", ToString(worker_.self),
                            ": 2 own calls have not ended")));
  EXPECT_THAT(worker_.events, IsEmpty());
  EXPECT_EQ(worker_.state->phase(), AgentState::Phase::kRunning);
}

TEST_F(DynamicLeaveTest, LeaveGoesOnAfterAServiceThatDoesNotDrain) {
  async::Promise<void> never;
  worker_.second.drained = never.future();
  // Waits that begin after the deadline end at once.
  worker_.first.drained = never.future();
  worker_.state->inbound_calls().Begin();
  worker_.leave->Begin();
  Run();
  EXPECT_THAT(worker_.events, ElementsAre("drain second"));
  PassDeadline();
  EXPECT_THAT(worker_.result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr(": service second has not drained")));
  EXPECT_THAT(
      worker_.events,
      ElementsAre("drain second", "drain first", "withdraw", "stop monitoring",
                  "notify", "left second", "left first"));
}

TEST_F(DynamicLeaveTest, LeaveGoesOnAfterCallsOfTheDrainThatDoNotEnd) {
  async::Promise<void> first;
  worker_.first.drained = first.future();
  worker_.leave->Begin();
  Run();
  worker_.BeginCall();
  first.Set(absl::OkStatus());
  Run();
  PassDeadline();
  EXPECT_THAT(worker_.result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr(": 1 own calls have not ended")));
  EXPECT_EQ(worker_.events.back(), "left first");
}

// They learn of the departure from the log.
TEST_F(DynamicLeaveTest, PeersNeedNotReplyToTheNotice) {
  async::Promise<void> never;
  worker_.member.SetNotify(never.future());
  worker_.leave->Begin();
  Run();
  EXPECT_EQ(worker_.events.back(), "notify");
  PassDeadline();
  EXPECT_EQ(worker_.events.back(), "left first");
  EXPECT_THAT(worker_.result(), IsOk());
}

TEST_F(DynamicLeaveTest, ErrorOfTheNoticeIsNotReported) {
  worker_.member.SetNotify(
      async::MakeReadyFuture<void>(absl::UnavailableError("no connection")));
  worker_.leave->Begin();
  Run();
  EXPECT_THAT(worker_.result(), IsOk());
}

TEST_F(DynamicLeaveTest, InboundCallsThatDoNotEndAreReported) {
  worker_.state->inbound_calls().Begin();
  worker_.leave->Begin();
  Run();
  EXPECT_EQ(worker_.events.back(), "left first");
  EXPECT_FALSE(worker_.ended());
  PassDeadline();
  EXPECT_THAT(worker_.result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr(": 1 inbound calls have not ended")));
}

TEST_F(DynamicLeaveTest, FirstErrorOfADrainIsReportedAndTheLeaveGoesOn) {
  worker_.second.drained =
      async::MakeReadyFuture<void>(absl::DataLossError("second"));
  worker_.first.drained =
      async::MakeReadyFuture<void>(absl::AbortedError("first"));
  worker_.member.SetWithdraw(absl::UnavailableError("withdraw"));
  worker_.leave->Begin();
  Run();
  EXPECT_EQ(worker_.result(), absl::DataLossError("second"));
  EXPECT_EQ(worker_.events.back(), "left first");
}

TEST_F(DynamicLeaveTest, ErrorOfTheStoreIsReportedAndTheLeaveGoesOn) {
  worker_.member.SetWithdraw(absl::UnavailableError("out of reach"));
  worker_.leave->Begin();
  Run();
  EXPECT_EQ(worker_.result(), absl::UnavailableError("out of reach"));
  EXPECT_EQ(worker_.events.back(), "left first");
}

// The caller's context has a deadline, which is not that of the leave.
TEST_F(DynamicLeaveTest, LeaveDoesNotRunInTheContextOfItsCaller) {
  bool marked = true;
  worker_.second.on_drain = [&] { marked = kMark.get() != nullptr; };
  {
    async::TaskLocal<int>::Scope mark(kMark, 5);
    worker_.leave->Begin();
  }
  Run();
  EXPECT_THAT(worker_.result(), IsOk());
  EXPECT_FALSE(marked);
}

TEST_F(DynamicLeaveTest, AbandonedLeaveBeginsNoFurtherStep) {
  async::Promise<void> second;
  worker_.second.drained = second.future();
  worker_.leave->Begin();
  Run();
  worker_.leave->Abandon();
  EXPECT_THAT(worker_.result(),
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("before it had left the job")));
  second.Set(absl::OkStatus());
  EXPECT_EQ(worker_.control.num_queued(), 0u);
  EXPECT_THAT(worker_.events, ElementsAre("drain second"));
  EXPECT_EQ(clock_.num_timers(), 0u);
}

TEST_F(DynamicLeaveTest, AbandonedLeaveDropsAStepThatIsPosted) {
  worker_.BeginCall();
  worker_.leave->Begin();
  Run();
  worker_.EndCall();
  EXPECT_EQ(worker_.control.num_queued(), 1u);
  worker_.leave->Abandon();
  Run();
  EXPECT_THAT(worker_.events, IsEmpty());
}

TEST_F(DynamicLeaveTest, AbandonBeforeBeginOrAfterTheEndHasNoEffect) {
  worker_.leave->Abandon();
  worker_.leave->Begin();
  Run();
  EXPECT_THAT(worker_.result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker_.events, IsEmpty());
  EXPECT_EQ(clock_.num_timers(), 0u);

  LeavingWorker other(1, std::nullopt, &store_, &clock_);
  other.leave->Begin();
  other.control.RunAll();
  other.leave->Abandon();
  EXPECT_THAT(other.result(), IsOk());
}

TEST_F(DynamicLeaveTest, AgentThatStopsIsNotWithdrawn) {
  async::Promise<void> first;
  worker_.first.drained = first.future();
  worker_.leave->Begin();
  Run();
  worker_.state->SetPhase(AgentState::Phase::kStopping);
  first.Set(absl::OkStatus());
  Run();
  EXPECT_THAT(worker_.events, ElementsAre("drain second", "drain first"));
  EXPECT_FALSE(worker_.ended());
}

TEST_F(DynamicLeaveTest, NothingRunsBehindTheClosedGate) {
  async::Promise<void> second;
  worker_.second.drained = second.future();
  worker_.leave->Begin();
  Run();
  worker_.state->gate().Close();
  second.Set(absl::OkStatus());
  clock_.AdvanceBy(kTimeout);
  // The executor may be gone.
  EXPECT_EQ(worker_.control.num_queued(), 0u);
  EXPECT_THAT(worker_.events, ElementsAre("drain second"));
  EXPECT_FALSE(worker_.ended());
}

}  // namespace
}  // namespace hawser::rpc
