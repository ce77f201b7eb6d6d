// Tests of F22 and F23: callers that cancel many calls, and functions that
// misbehave.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/delays.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

const int kRounds = async::NightlyOr(2500, 10);
constexpr int kCallsPerRound = 400;

int64_t NowNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

class StormTest : public BothWaysFaultsTest {
 protected:
  void SetUp() override {
    FaultsTest::SetUp();
    ASSERT_TRUE(Start("a", 1).AwaitReady());
    ASSERT_THAT(driver().Sync("a", kApply, 1), IsOk());
  }

  // Returns when "a" runs no calls.
  void AwaitQuiet() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while ((*driver().Sync("a", kCensus))["calls"] > 0) {
      ASSERT_LT(absl::Now(), deadline) << "cancelled calls still run";
    }
  }

  // A call is counted until its callbacks have run.
  void AwaitNoOwnCalls() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (driver().num_client_calls() > 0) {
      ASSERT_LT(absl::Now(), deadline) << "ended calls are still counted";
      std::this_thread::yield();
    }
  }

  // Collects the cancelled kHold calls and the times of their cancellation.
  void CollectCancelled() {
    auto cancelled = driver().Sync("a", kCancelled);
    ASSERT_THAT(cancelled, IsOk());
    for (const auto& [id, time] : *cancelled) {
      EXPECT_TRUE(cancelled_.emplace(id, time).second)
          << "call " << id << " twice";
    }
  }

  // Cancelled calls: time by id.
  std::map<int64_t, int64_t> cancelled_;
};

TEST_P(StormTest, F22CalleeSeesCancellationsWithoutLeaks) {
  std::map<std::string, int64_t> before;
  std::map<int64_t, int64_t> given_up;
  int64_t last_id = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<async::Future<void>> calls;
    const int64_t first_id = last_id + 1;
    for (int i = 0; i < kCallsPerRound; ++i) {
      calls.push_back(
          driver().Async("a", {.timeout = rpc::kNoTimeout}, kHold, ++last_id));
    }
    AwaitBegun("a", last_id);
    for (int i = 0; i < kCallsPerRound; ++i) {
      given_up[first_id + i] = NowNanoseconds();
      // Only the first Cancel sets the status.
      EXPECT_TRUE(calls[i].Cancel());
      EXPECT_FALSE(calls[i].Cancel());
    }
    for (auto& call : calls) {
      EXPECT_THAT(call.Wait(), StatusIs(absl::StatusCode::kCancelled));
    }
    AwaitQuiet();
    CollectCancelled();
    if (round == 0) before = *driver().Sync("a", kCensus);
  }
  ASSERT_EQ(cancelled_.size(), given_up.size());
  Delays delays;
  for (const auto& [id, time] : given_up) {
    delays.Add(absl::Nanoseconds(cancelled_[id] - time));
  }
  delays.Record("cancellation_seen");
  EXPECT_LE(delays.Percentile(50), absl::Milliseconds(100) + kSlackOfMost);
  EXPECT_LE(delays.Percentile(99), absl::Milliseconds(100) + kSlackOfMost);
  std::map<std::string, int64_t> after = *driver().Sync("a", kCensus);
  EXPECT_LE(after["descriptors"], before["descriptors"] + 2);
  EXPECT_LE(after["threads"], before["threads"] + 4);
  AwaitNoOwnCalls();
}

TEST_P(StormTest, F22DeadlinesEndCallsOnceAtBothEnds) {
  std::atomic<int> ended{0};
  int64_t last_id = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<async::Future<void>> calls;
    for (int i = 0; i < kCallsPerRound; ++i) {
      calls.push_back(
          driver().Async("a", {.timeout = absl::Microseconds(50 * (1 + i))},
                         kHold, ++last_id));
      calls.back().OnReady([&](const absl::Status&) { ++ended; });
    }
    for (auto& call : calls) {
      EXPECT_THAT(call.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded));
    }
    AwaitQuiet();
    CollectCancelled();
  }
  AwaitNoOwnCalls();
  EXPECT_EQ(ended, kRounds * kCallsPerRound);
  // Some calls did not arrive; the others were cancelled once.
  EXPECT_LE(cancelled_.size(), static_cast<size_t>(last_id));
  EXPECT_THAT(driver().Sync("a", kApply, 2), IsOk());
}

TEST_P(StormTest, F23FaultyFunctionsDoNotAffectOtherCalls) {
  std::atomic<bool> stop{false};
  std::atomic<int> served{0};
  // Other calls run at the same time.
  std::thread others([&] {
    while (!stop) {
      EXPECT_THAT(driver().Sync("a", kApply, 1), IsOk());
      ++served;
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const absl::Status thrown = driver().Sync("a", kThrow);
    EXPECT_THAT(thrown,
                StatusIs(absl::StatusCode::kInternal, HasSubstr("poison")));
    EXPECT_TRUE(IsAt(thrown, "a", /*maybe_applied=*/false)) << thrown;
  }
  // Above the limit on messages, and above the available memory.
  EXPECT_THAT(driver().Sync("a", kHuge, kMaxMessageBytes + 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_message_bytes")));
  EXPECT_THAT(driver().Sync("a", kHuge, std::numeric_limits<int64_t>::max()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("faults.Huge")));
  // One less than the number of threads.
  std::vector<async::Future<void>> spinning;
  const absl::Time start = absl::Now();
  for (int i = 0; i < 3; ++i) {
    spinning.push_back(
        driver().Async("a", {.timeout = absl::Milliseconds(500)}, kSpin));
  }
  for (auto& call : spinning) {
    EXPECT_THAT(call.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(1500) + kSlack);
  const int served_before = served;
  while (served == served_before) std::this_thread::yield();
  stop = true;
  others.join();
  AwaitQuiet();
  EXPECT_GT(served, 0);
  EXPECT_THAT(driver().Sync("a", kCensus), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Ways, StormTest, testing::Bool(), WayName);

}  // namespace
}  // namespace hawser::tests
