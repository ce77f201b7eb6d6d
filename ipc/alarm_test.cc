#include "ipc/alarm.h"

#include <chrono>

#include "async/clock.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

using std::chrono::seconds;

constexpr async::MonotonicTime kStart{std::chrono::hours(1)};

TEST(AlarmTest, DoesNotWakeIfNoThreadSleeps) {
  Alarm alarm;
  EXPECT_FALSE(alarm.anyone_sleeps());
  EXPECT_FALSE(alarm.MustWake(kStart));
}

TEST(AlarmTest, WakesAThreadThatWouldSleepLonger) {
  Alarm alarm;
  ASSERT_TRUE(alarm.FallAsleep(kStart, kStart + seconds(10)));
  EXPECT_TRUE(alarm.anyone_sleeps());
  EXPECT_EQ(alarm.time(), kStart + seconds(10));
  EXPECT_FALSE(alarm.MustWake(kStart + seconds(10)));
  EXPECT_FALSE(alarm.MustWake(kStart + seconds(11)));
  EXPECT_TRUE(alarm.MustWake(kStart + seconds(9)));
}

TEST(AlarmTest, LaterTimeDoesNotWakeAgain) {
  Alarm alarm;
  ASSERT_TRUE(alarm.FallAsleep(kStart, async::kNever));
  EXPECT_TRUE(alarm.MustWake(kStart + seconds(2)));
  EXPECT_FALSE(alarm.MustWake(kStart + seconds(3)));
  EXPECT_TRUE(alarm.MustWake(kStart + seconds(1)));
}

TEST(AlarmTest, OnlyOneThreadSleeps) {
  Alarm alarm;
  ASSERT_TRUE(alarm.FallAsleep(kStart, async::kNever));
  EXPECT_FALSE(alarm.FallAsleep(kStart, kStart + seconds(1)));
  EXPECT_EQ(alarm.time(), async::kNever);
  alarm.WakeUp();
  EXPECT_FALSE(alarm.anyone_sleeps());
  EXPECT_TRUE(alarm.FallAsleep(kStart, kStart + seconds(1)));
}

// Nothing is due when the thread sleeps again, since each call has completed.
TEST(AlarmTest, ConsecutiveCallsWakeOnce) {
  Alarm alarm;
  async::MonotonicTime now = kStart;
  int num_woken = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(alarm.FallAsleep(now, async::kNever));
    if (alarm.MustWake(now + seconds(60))) ++num_woken;
    alarm.WakeUp();
    now += std::chrono::milliseconds(10);
  }
  EXPECT_EQ(num_woken, 1);
}

TEST(AlarmTest, RequestedTimeIsKeptUntilItHasPassed) {
  Alarm alarm;
  ASSERT_TRUE(alarm.FallAsleep(kStart, async::kNever));
  ASSERT_TRUE(alarm.MustWake(kStart + seconds(60)));
  alarm.WakeUp();
  ASSERT_TRUE(alarm.FallAsleep(kStart + seconds(59), async::kNever));
  EXPECT_EQ(alarm.time(), kStart + seconds(60));
  alarm.WakeUp();
  // An earlier deadline takes precedence.
  ASSERT_TRUE(alarm.FallAsleep(kStart + seconds(59),
                               kStart + std::chrono::milliseconds(59500)));
  EXPECT_EQ(alarm.time(), kStart + std::chrono::milliseconds(59500));
  alarm.WakeUp();
  ASSERT_TRUE(alarm.FallAsleep(kStart + seconds(60), async::kNever));
  EXPECT_EQ(alarm.time(), async::kNever);
}

}  // namespace
}  // namespace hawser::ipc
