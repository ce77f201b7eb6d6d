#include "ps/clock/client_clock.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/worker_time.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClientClockTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(clock_.BeginJoin(), IsOkAndHolds(1));
    clock_.Join(5);
  }

  ClientClock clock_;
};

TEST_F(ClientClockTest, AStepHasThePushesOfEachServer) {
  ASSERT_THAT(clock_.BeginPush({"a", "b"}), IsOk());
  ASSERT_THAT(clock_.BeginPush({"b"}), IsOk());
  const auto steps = clock_.Advance();
  ASSERT_THAT(steps, IsOkAndHolds(SizeIs(1)));
  EXPECT_EQ((*steps)[0].time.clock, 6);
  EXPECT_EQ((*steps)[0].pushes,
            (std::map<std::string, int64_t>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ((*clock_.Advance())[0].pushes.size(), 0);
}

TEST_F(ClientClockTest, StepsFollowThePullsOfEarlierClocks) {
  const WorkerTime first = *clock_.BeginPull();
  ASSERT_THAT(clock_.Advance(), IsOkAndHolds(IsEmpty()));
  const WorkerTime second = *clock_.BeginPull();
  EXPECT_EQ(second.clock, 6);
  ASSERT_THAT(clock_.Advance(), IsOkAndHolds(IsEmpty()));
  const auto steps = clock_.EndPull(first);
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(steps[0].time.clock, 6);
  EXPECT_THAT(clock_.EndPull(second), SizeIs(1));
}

TEST_F(ClientClockTest, AFailedPushEndsTheClock) {
  const absl::StatusOr<WorkerTime> time = clock_.BeginPush({"a"});
  ASSERT_THAT(time, IsOk());
  clock_.Fail(*time, absl::UnavailableError("server a"));
  const auto failed =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("server a"));
  EXPECT_THAT(clock_.Advance(), failed);
  EXPECT_THAT(clock_.BeginPush({"a"}), failed);
  EXPECT_THAT(clock_.BeginPull(), failed);
  // The next membership is not concerned.
  EXPECT_TRUE(clock_.Leave().joined());
  ASSERT_THAT(clock_.BeginJoin(), IsOkAndHolds(2));
  clock_.Join(9);
  clock_.Fail(*time, absl::UnavailableError("late"));
  EXPECT_THAT(clock_.Advance(), IsOk());
}

TEST_F(ClientClockTest, AWorkerJoinsOnce) {
  EXPECT_THAT(clock_.BeginJoin(), StatusIs(absl::StatusCode::kAlreadyExists,
                                           HasSubstr("has joined")));
  clock_.Leave();
  EXPECT_THAT(clock_.Advance(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("left")));
  EXPECT_FALSE(clock_.BeginPull()->joined());
}

}  // namespace
}  // namespace hawser::ps
