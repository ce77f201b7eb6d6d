#include "async/testing/simulated_clock.h"

#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;

TEST(SimulatedClockTest, TimeIsConstantUntilAdvanced) {
  SimulatedClock clock;
  const MonotonicTime start = clock.Now();
  bool ran = false;
  clock.CallAt(start, [&] { ran = true; });
  EXPECT_EQ(clock.Now(), start);
  EXPECT_FALSE(ran);
  clock.AdvanceBy(absl::ZeroDuration());
  EXPECT_TRUE(ran);
  clock.AdvanceBy(absl::Seconds(2));
  EXPECT_EQ(TimeBetween(start, clock.Now()), absl::Seconds(2));
}

TEST(SimulatedClockTest, EachTimerSeesItsOwnTime) {
  SimulatedClock clock;
  const MonotonicTime start = clock.Now();
  std::vector<int> seconds;
  auto note = [&] {
    seconds.push_back(absl::ToInt64Seconds(TimeBetween(start, clock.Now())));
  };
  clock.CallAfter(absl::Seconds(3), note);
  clock.CallAfter(absl::Seconds(1), [&] {
    note();
    clock.CallAfter(absl::Seconds(1), note);
  });
  clock.CallAfter(absl::Seconds(9), note);
  clock.AdvanceBy(absl::Seconds(5));
  EXPECT_THAT(seconds, ElementsAre(1, 2, 3));
  EXPECT_EQ(clock.num_timers(), 1u);
  EXPECT_TRUE(clock.AdvanceToNextTimer());
  EXPECT_THAT(seconds, ElementsAre(1, 2, 3, 9));
  EXPECT_FALSE(clock.AdvanceToNextTimer());
}

TEST(SimulatedClockTest, CancelledTimerDoesNotRun) {
  SimulatedClock clock;
  bool ran = false;
  const TimerId timer = clock.CallAfter(absl::Seconds(1), [&] { ran = true; });
  EXPECT_TRUE(clock.Cancel(timer));
  EXPECT_FALSE(clock.Cancel(timer));
  clock.AdvanceBy(absl::Seconds(2));
  EXPECT_FALSE(ran);
}

TEST(SimulatedClockTest, InfiniteTimerNeverRuns) {
  SimulatedClock clock;
  clock.CallAfter(absl::InfiniteDuration(), [] { FAIL(); });
  clock.AdvanceBy(absl::Hours(1000));
  EXPECT_EQ(clock.num_timers(), 1u);
}

}  // namespace
}  // namespace hawser::async
