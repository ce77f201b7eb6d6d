#include "async/clock.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(MonotonicTimeTest, DelaysSaturate) {
  const MonotonicTime start;
  EXPECT_EQ(AddDelay(start, absl::InfiniteDuration()), kNever);
  EXPECT_EQ(AddDelay(kNever, absl::Seconds(-5)), kNever);
  EXPECT_EQ(AddDelay(start, absl::Seconds(2)), start + std::chrono::seconds(2));
  EXPECT_EQ(TimeBetween(start, kNever), absl::InfiniteDuration());
  EXPECT_EQ(TimeBetween(start, start + std::chrono::seconds(3)),
            absl::Seconds(3));
}

TEST(RealClockTest, RunsTimersByTimeAndThenInOrder) {
  Promise<void> done;
  std::vector<int> order;
  MonotonicTime soon;
  RealClock clock;
  // Timers added in a callback do not run during it, even if they are overdue.
  clock.CallAfter(absl::ZeroDuration(), [&] {
    soon = AddDelay(clock.Now(), absl::Milliseconds(30));
    clock.CallAt(AddDelay(soon, absl::Milliseconds(1)), [&] {
      order.push_back(3);
      done.Set(absl::OkStatus());
    });
    clock.CallAt(soon, [&] { order.push_back(1); });
    clock.CallAt(soon, [&] { order.push_back(2); });
  });
  EXPECT_THAT(done.future().Wait(), IsOk());
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
  EXPECT_GE(clock.Now(), soon);
}

TEST(RealClockTest, CancelBeforeButNotAfter) {
  RealClock clock;
  auto guard = std::make_shared<int>();
  const TimerId far = clock.CallAfter(absl::Hours(1), [guard] {});
  EXPECT_TRUE(clock.Cancel(far));
  EXPECT_EQ(guard.use_count(), 1);
  EXPECT_FALSE(clock.Cancel(far));

  Promise<void> ran;
  const TimerId now =
      clock.CallAfter(absl::ZeroDuration(), [&] { ran.Set(absl::OkStatus()); });
  EXPECT_THAT(ran.future().Wait(), IsOk());
  EXPECT_FALSE(clock.Cancel(now));
}

TEST(RealClockTest, TimerRunsUnderTheContextOfItsCreator) {
  RealClock clock;
  TaskLocal<int> number;
  Promise<void> ran;
  int seen = 0;
  {
    TaskLocal<int>::Scope scope(number, 5);
    clock.CallAfter(absl::ZeroDuration(), [&] {
      seen = number.get() == nullptr ? -1 : *number.get();
      ran.Set(absl::OkStatus());
    });
  }
  EXPECT_THAT(ran.future().Wait(), IsOk());
  EXPECT_EQ(seen, 5);
}

TEST(RealClockTest, CallbackMayAddTimersAndPendingOnesAreDestroyed) {
  auto guard = std::make_shared<int>();
  {
    RealClock clock;
    Promise<void> ran;
    clock.CallAfter(absl::ZeroDuration(), [&] {
      clock.CallAfter(absl::Hours(1), [guard] {});
      clock.CallAfter(absl::ZeroDuration(), [&] { ran.Set(absl::OkStatus()); });
    });
    EXPECT_THAT(ran.future().Wait(), IsOk());
  }
  EXPECT_EQ(guard.use_count(), 1);
}

}  // namespace
}  // namespace hawser::async
