#include "rpc/agent/outbound/call_deadline.h"

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

class CallDeadlineTest : public testing::Test {
 protected:
  async::MonotonicTime After(absl::Duration delay) const {
    return async::AddDelay(clock_.Now(), delay);
  }
  // Of an inbound call with that deadline.
  static CurrentCall CallUntil(async::MonotonicTime deadline) {
    return CurrentCall(nullptr, WorkerInfo(), deadline,
                       std::make_shared<Cancellation>());
  }

  async::SimulatedClock clock_;
  const std::shared_ptr<AgentState> state_ = std::make_shared<AgentState>(
      AgentState::Options{.self = {},
                          .job = "job",
                          .default_timeout = absl::Seconds(7),
                          .clock = &clock_});
};

TEST_F(CallDeadlineTest, TimeoutBeginsNow) {
  EXPECT_THAT(CallDeadline(*state_, absl::Seconds(2), /*inherit=*/true),
              IsOkAndHolds(After(absl::Seconds(2))));
  clock_.AdvanceBy(absl::Seconds(1));
  EXPECT_THAT(CallDeadline(*state_, absl::Seconds(2), /*inherit=*/true),
              IsOkAndHolds(After(absl::Seconds(2))));
  EXPECT_THAT(CallDeadline(*state_, absl::ZeroDuration(), /*inherit=*/true),
              IsOkAndHolds(clock_.Now()));
}

TEST_F(CallDeadlineTest, WithoutATimeoutTheDefaultApplies) {
  EXPECT_THAT(CallDeadline(*state_, std::nullopt, /*inherit=*/true),
              IsOkAndHolds(After(absl::Seconds(7))));
}

TEST_F(CallDeadlineTest, NoTimeoutNeverPasses) {
  EXPECT_THAT(CallDeadline(*state_, kNoTimeout, /*inherit=*/true),
              IsOkAndHolds(async::kNever));
}

TEST_F(CallDeadlineTest, NegativeTimeoutIsInvalid) {
  EXPECT_THAT(CallDeadline(*state_, -absl::Nanoseconds(1), /*inherit=*/true),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Zero has passed already, and a quarter of a nanosecond has not.
TEST_F(CallDeadlineTest, TimeoutIsRoundedUp) {
  EXPECT_THAT(CallDeadline(*state_, absl::Nanoseconds(1) / 4, /*inherit=*/true),
              IsOkAndHolds(After(absl::Nanoseconds(1))));
}

TEST_F(CallDeadlineTest, EarlierDeadlineOfTheInboundCallApplies) {
  const async::MonotonicTime earlier = After(absl::Seconds(1));
  CurrentCall::Scope scope(CallUntil(earlier));
  for (const absl::Duration timeout : {absl::Seconds(2), kNoTimeout}) {
    EXPECT_THAT(CallDeadline(*state_, timeout, /*inherit=*/true),
                IsOkAndHolds(earlier));
  }
  EXPECT_THAT(CallDeadline(*state_, std::nullopt, /*inherit=*/true),
              IsOkAndHolds(earlier));
  EXPECT_THAT(CallDeadline(*state_, absl::Milliseconds(500), /*inherit=*/true),
              IsOkAndHolds(After(absl::Milliseconds(500))));
}

TEST_F(CallDeadlineTest, DeadlineOfTheInboundCallIsInheritedOnRequestOnly) {
  CurrentCall::Scope scope(CallUntil(After(absl::Seconds(1))));
  EXPECT_THAT(CallDeadline(*state_, absl::Seconds(2), /*inherit=*/false),
              IsOkAndHolds(After(absl::Seconds(2))));
}

}  // namespace
}  // namespace hawser::rpc
