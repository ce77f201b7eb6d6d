#include "ipc/yield_backoff.h"

#include <algorithm>
#include <chrono>

#include "async/clock.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{4};

class YieldBackoffTest : public ::testing::Test {
 protected:
  // Reports a yield of length `away`.
  void Yield(async::MonotonicTime::duration away) {
    const async::MonotonicTime start = now_;
    now_ += away;
    backoff_.Yielded(start, now_);
  }
  // Time left in the backoff period.
  milliseconds BackoffLength() const {
    milliseconds length{0};
    while (backoff_.BackingOff(now_ + length)) ++length;
    return length;
  }
  // Advances the time by `length`.
  void Advance(async::MonotonicTime::duration length) { now_ += length; }

  YieldBackoff backoff_;
  async::MonotonicTime now_ = async::MonotonicTime{} + std::chrono::hours(1);
};

TEST_F(YieldBackoffTest, QuickYieldsDoNotBackOff) {
  for (int i = 0; i < 1000; ++i) {
    Yield(YieldBackoff::kTooLong);
    ASSERT_FALSE(backoff_.BackingOff(now_));
  }
}

TEST_F(YieldBackoffTest, LongYieldStartsAShortBackoff) {
  Yield(YieldBackoff::kTooLong + microseconds(1));
  EXPECT_EQ(BackoffLength(), YieldBackoff::kShortest);
  Advance(YieldBackoff::kShortest);
  EXPECT_FALSE(backoff_.BackingOff(now_));
}

TEST_F(YieldBackoffTest, BackoffDoublesUpToABound) {
  milliseconds expected = YieldBackoff::kShortest;
  for (int i = 0; i < 12; ++i) {
    Yield(kSlice);
    ASSERT_EQ(BackoffLength(), expected);
    Advance(expected);
    expected = std::min(2 * expected, YieldBackoff::kLongest);
  }
  EXPECT_EQ(expected, YieldBackoff::kLongest);
}

TEST_F(YieldBackoffTest, BackoffIsShortAgainAfterQuickYields) {
  Yield(kSlice);
  Advance(YieldBackoff::kShortest);
  Yield(kSlice);
  Advance(2 * YieldBackoff::kShortest);
  // Shorter than the last backoff period.
  Yield(microseconds(5));
  Advance(YieldBackoff::kShortest);
  Yield(kSlice);
  EXPECT_EQ(BackoffLength(), 4 * YieldBackoff::kShortest);
  Advance(4 * YieldBackoff::kShortest);
  Advance(4 * YieldBackoff::kShortest);
  Yield(kSlice);
  EXPECT_EQ(BackoffLength(), YieldBackoff::kShortest);
}

}  // namespace
}  // namespace hawser::ipc
