#include "store/watch_threads.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

using Values = WatchThreads::Values;
using Watch = WatchThreads::Watch;

constexpr absl::StatusCode kCancelled = absl::StatusCode::kCancelled;

TEST(WatchThreadsTest, ResultsOfBodiesCompleteTheFutures) {
  WatchThreads watches;
  const auto values = watches.Start([](Watch&) { return Values{"v"}; });
  const auto error = watches.Start([](Watch&) -> absl::StatusOr<Values> {
    return absl::DataLossError("damaged");
  });
  EXPECT_THAT(values.Wait(), IsOkAndHolds(ElementsAre("v")));
  EXPECT_THAT(error.Wait(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(WatchThreadsTest, CancelledFutureEndsAPause) {
  WatchThreads watches;
  absl::Notification begun;
  absl::Notification ended;
  const auto future = watches.Start([&](Watch& watch) {
    begun.Notify();
    watch.PauseUntil(async::kNever);
    EXPECT_TRUE(watch.cancelled());
    ended.Notify();
    return Values();
  });
  begun.WaitForNotification();
  EXPECT_TRUE(future.Cancel());
  ended.WaitForNotification();
  EXPECT_THAT(future.Wait(), StatusIs(kCancelled));
}

TEST(WatchThreadsTest, CancelledFutureInterruptsACall) {
  WatchThreads watches;
  absl::Notification begun;
  absl::Notification interrupted;
  const auto future = watches.Start([&](Watch& watch) {
    const WatchThreads::Interruptible call(&watch,
                                           [&] { interrupted.Notify(); });
    begun.Notify();
    interrupted.WaitForNotification();
    return Values();
  });
  begun.WaitForNotification();
  EXPECT_TRUE(future.Cancel());
  watches.Stop();
}

TEST(WatchThreadsTest, CallAfterTheCancellationIsInterruptedAtOnce) {
  WatchThreads watches;
  const auto future = watches.Start([&](Watch& watch) {
    watch.PauseUntil(async::kNever);
    absl::Notification interrupted;
    const WatchThreads::Interruptible call(&watch,
                                           [&] { interrupted.Notify(); });
    interrupted.WaitForNotification();
    return Values();
  });
  future.Cancel();
  watches.Stop();
}

TEST(WatchThreadsTest, StopEndsAllWatches) {
  WatchThreads watches;
  int ended = 0;
  const auto wait = [&](Watch& watch) -> absl::StatusOr<Values> {
    watch.PauseUntil(async::kNever);
    return absl::UnavailableError("interrupted");
  };
  const auto first = watches.Start(wait);
  const auto second = watches.Start(wait);
  second.OnReady([&](const absl::StatusOr<Values>&) { ++ended; });
  watches.Stop();
  EXPECT_EQ(ended, 1);
  EXPECT_THAT(first.Wait(), StatusIs(kCancelled));
  EXPECT_THAT(second.Wait(), StatusIs(kCancelled));
  EXPECT_THAT(watches.Start(wait).Wait(), StatusIs(kCancelled));
}

}  // namespace
}  // namespace hawser::store::internal
