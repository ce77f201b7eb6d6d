#include "rpc/peers/in_flight_counter.h"

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

TEST(InFlightCounterTest, IsIdleAtOnceWithoutCalls) {
  InFlightCounter count;
  EXPECT_TRUE(count.WhenIdle().ready());
  EXPECT_EQ(count.value(), 0);
}

TEST(InFlightCounterTest, IsIdleWhenTheLastCallEnds) {
  InFlightCounter count;
  count.Begin();
  count.Begin();
  const async::Future<void> first = count.WhenIdle();
  count.End();
  const async::Future<void> second = count.WhenIdle();
  EXPECT_EQ(count.value(), 1);
  EXPECT_FALSE(first.ready());
  EXPECT_FALSE(second.ready());
  count.End();
  EXPECT_TRUE(first.ready());
  EXPECT_TRUE(second.ready());
}

TEST(InFlightCounterTest, IsIdleAgainAfterFurtherCalls) {
  InFlightCounter count;
  EXPECT_TRUE(count.WhenIdle().ready());
  count.Begin();
  const async::Future<void> idle = count.WhenIdle();
  EXPECT_FALSE(idle.ready());
  count.End();
  EXPECT_TRUE(idle.ready());
}

// The waiter and the last End race on two atomic words.
TEST(InFlightCounterTest, TheLastEndIsNotMissed) {
  constexpr int kRounds = 200;
  constexpr int kCalls = 2;
  std::vector<InFlightCounter> counts(kRounds);
  for (InFlightCounter& count : counts) {
    for (int i = 0; i < kCalls; ++i) count.Begin();
  }
  // All threads start one count together.
  std::barrier line(kCalls + 1);
  std::vector<std::thread> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.emplace_back([&] {
      for (InFlightCounter& count : counts) {
        line.arrive_and_wait();
        count.End();
      }
    });
  }
  for (InFlightCounter& count : counts) {
    line.arrive_and_wait();
    const absl::Status idle = count.WhenIdle().WaitFor(absl::Seconds(20));
    EXPECT_THAT(idle, IsOk());
    EXPECT_EQ(count.value(), 0);
    if (!idle.ok()) {
      // The other threads continue without it.
      line.arrive_and_drop();
      break;
    }
  }
  for (std::thread& call : calls) call.join();
}

// The thread that ended the last call may be slow to notify, here because
// others hold the lock.
TEST(InFlightCounterTest, IsNotIdleForACallThatEndedBefore) {
  InFlightCounter count;
  std::atomic<bool> stop{false};
  std::thread calls([&] {
    while (!stop.load()) {
      count.Begin();
      count.End();
    }
  });
  std::vector<std::thread> waiters;
  for (int i = 0; i < 2; ++i) {
    waiters.emplace_back([&] {
      while (!stop.load()) (void)count.WhenIdle();
    });
  }
  (void)count.WhenIdle();
  int num_early = 0;
  for (int round = 0; round < 50000; ++round) {
    count.Begin();
    if (count.WhenIdle().ready()) ++num_early;
    count.End();
  }
  EXPECT_EQ(num_early, 0);
  stop = true;
  calls.join();
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace hawser::rpc
