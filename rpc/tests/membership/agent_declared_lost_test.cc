// A worker that was declared lost, in one thread and simulated time: what its
// peers know before it does.

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function_registry.h"
#include "rpc/inproc/network.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Function<void()> kHold{"test.Hold"};

// Rounds of w0 are every 500 ms from 0 on, those of w1 from 300 ms on, and the
// heartbeats of w0 from 400 ms on, when it first calls w1. So w1 reads at 800
// ms that w0 is lost, refuses its heartbeat at 900 ms, and w0 itself looks at
// the log at 1000 ms.
class AgentDeclaredLostTest : public testing::Test {
 protected:
  AgentDeclaredLostTest() {
    EXPECT_THAT(registry_.Register(kHold, [this] { return held_.future(); }),
                IsOk());
  }
  ~AgentDeclaredLostTest() override {
    w0_.reset();
    w1_.reset();
  }

  void StartBoth(LivenessOptions of_w0 = {}) {
    w0_ = Start(0, link0_, of_w0);
    AdvanceTo(absl::Milliseconds(300));
    w1_ = Start(1, link1_, {});
    AdvanceTo(absl::Milliseconds(400));
    under_way_ = w0_->Async("w1", {.timeout = kNoTimeout}, kHold);
    AdvanceTo(absl::Milliseconds(600));
    EXPECT_EQ(w1_->num_server_calls(), 1);
  }
  void DeclareLost() {
    MembershipLog log(&store_, AgentOptions().job);
    EXPECT_THAT(log.Append(LostEvent(w0_->info().incarnation,
                                     w1_->info().incarnation, "was silent")),
                IsOk());
  }

  std::unique_ptr<Agent> Start(int rank, SimulatedStoreLink& link,
                               LivenessOptions liveness) {
    AgentOptions options;
    options.liveness = liveness;
    options.name = absl::StrCat("w", rank);
    options.rank = rank;
    options.store = &link;
    options.transport = network_.NewTransport();
    options.registry = &registry_;
    options.clock = &clock_;
    options.executor = &executor_;
    absl::StatusOr<std::unique_ptr<Agent>> agent =
        Agent::Start(std::move(options));
    EXPECT_THAT(agent, IsOk());
    executor_.RunAll();
    return *std::move(agent);
  }

  void AdvanceTo(absl::Duration time) {
    constexpr absl::Duration kTick = absl::Milliseconds(10);
    for (; now_ < time; now_ += kTick) {
      clock_.AdvanceBy(kTick);
      executor_.RunAll();
    }
  }

  absl::Duration now_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  InprocNetwork network_{{.executor = &executor_, .clock = &clock_}};
  store::HashStore store_{{.clock = &clock_}};
  SimulatedStoreLink link0_{&store_};
  SimulatedStoreLink link1_{&store_};
  FunctionRegistry registry_;
  async::Promise<void> held_;
  std::unique_ptr<Agent> w0_;
  std::unique_ptr<Agent> w1_;
  async::Future<void> under_way_;
};

TEST_F(AgentDeclaredLostTest, WorkerLearnsOfItsLossAndEndsItsCalls) {
  StartBoth();
  DeclareLost();
  AdvanceTo(absl::Milliseconds(610));
  ASSERT_TRUE(w1_->IsLost(w0_->info()));
  ASSERT_TRUE(under_way_.ready());
  EXPECT_THAT(under_way_.Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("w0"), HasSubstr("must restart"))));
  EXPECT_EQ(w0_->DebugInfo()["agent.store_reachable"], "1");
  EXPECT_EQ(w0_->DebugInfo()["agent.declared_lost"], "1");
}

TEST_F(AgentDeclaredLostTest, PeerThatRefusesIsLostWhereTheLogCannotBeRead) {
  StartBoth();
  link0_.SetPartitioned(true);
  DeclareLost();
  AdvanceTo(absl::Milliseconds(950));
  ASSERT_TRUE(under_way_.ready());
  EXPECT_THAT(under_way_.Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("worker 'w1'")));
  EXPECT_EQ(w0_->DebugInfo()["agent.declared_lost"], "0");
  EXPECT_EQ(w0_->DebugInfo()["agent.store_reachable"], "0");
}

// w1 receives nothing from w0, and cannot report that at once. Meanwhile it
// refuses calls of w0, which must not make w0 report w1 as lost.
TEST_F(AgentDeclaredLostTest, PeerThatFoundItFirstIsNotTakenForLost) {
  StartBoth({.silent_limit = absl::Minutes(1),
             .unreachable_limit = absl::Minutes(1)});
  network_.Partition(w0_->info().address, w1_->info().address, true);
  AdvanceTo(absl::Seconds(2));
  link1_.SetPartitioned(true);
  AdvanceTo(absl::Seconds(4));
  ASSERT_TRUE(w1_->IsLost(w0_->info()));
  network_.Partition(w0_->info().address, w1_->info().address, false);
  AdvanceTo(absl::Seconds(6));
  EXPECT_FALSE(w0_->IsLost(w1_->info()));
  const auto refused = w0_->Async("w1", {.timeout = kNoTimeout}, kHold);
  executor_.RunAll();
  ASSERT_TRUE(refused.ready());
  EXPECT_THAT(refused.Wait(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("w0"), HasSubstr("for lost"))));
  link1_.SetPartitioned(false);
  AdvanceTo(absl::Seconds(8));
  EXPECT_EQ(w0_->DebugInfo()["agent.declared_lost"], "1");
  EXPECT_EQ(w1_->DebugInfo()["agent.declared_lost"], "0");
}

}  // namespace
}  // namespace hawser::rpc
