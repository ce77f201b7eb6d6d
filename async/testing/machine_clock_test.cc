#include "async/testing/machine_clock.h"

#include <vector>

#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/simulated_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MachineClockTest : public testing::Test {
 protected:
  void CallAfter(int seconds) {
    clock_.CallAfter(absl::Seconds(seconds),
                     [this, seconds] { ran_.push_back(seconds); });
  }

  SimulatedClock base_;
  MachineClock clock_{&base_};
  const MonotonicTime start_ = clock_.Now();
  std::vector<int> ran_;
};

TEST_F(MachineClockTest, TimersRunInTheOrderOfTheirTimes) {
  CallAfter(3);
  CallAfter(1);
  const TimerId cancelled = clock_.CallAfter(absl::Seconds(2), [] { FAIL(); });
  EXPECT_TRUE(clock_.Cancel(cancelled));
  EXPECT_FALSE(clock_.Cancel(cancelled));
  base_.AdvanceBy(absl::Seconds(2));
  EXPECT_THAT(ran_, ElementsAre(1));
  base_.AdvanceBy(absl::Seconds(1));
  EXPECT_THAT(ran_, ElementsAre(1, 3));
  EXPECT_EQ(TimeBetween(start_, clock_.Now()), absl::Seconds(3));
}

TEST_F(MachineClockTest, AfterAJumpTheTimersPassedAreLate) {
  CallAfter(1);
  CallAfter(3);
  clock_.JumpForward(absl::Seconds(2));
  EXPECT_EQ(TimeBetween(start_, clock_.Now()), absl::Seconds(2));
  EXPECT_THAT(ran_, IsEmpty());
  base_.AdvanceBy(absl::ZeroDuration());
  EXPECT_THAT(ran_, ElementsAre(1));
  base_.AdvanceBy(absl::Seconds(1));
  EXPECT_THAT(ran_, ElementsAre(1, 3));
}

TEST_F(MachineClockTest, ASuspendedClockStandsStill) {
  CallAfter(2);
  base_.AdvanceBy(absl::Seconds(1));
  clock_.Suspend();
  base_.AdvanceBy(absl::Seconds(5));
  EXPECT_EQ(TimeBetween(start_, clock_.Now()), absl::Seconds(1));
  EXPECT_THAT(ran_, IsEmpty());
  clock_.Resume();
  base_.AdvanceBy(absl::Seconds(1));
  EXPECT_THAT(ran_, ElementsAre(2));
  EXPECT_EQ(TimeBetween(start_, clock_.Now()), absl::Seconds(2));
}

}  // namespace
}  // namespace hawser::async
