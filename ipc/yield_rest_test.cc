#include "ipc/yield_rest.h"

#include <algorithm>
#include <chrono>

#include "async/clock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{4};

class YieldRestTest : public ::testing::Test {
 protected:
  // Reports a yield of length `away`.
  void Yield(async::MonotonicTime::duration away) {
    const async::MonotonicTime start = now_;
    now_ += away;
    rest_.Yielded(start, now_);
  }
  // Time left in the backoff period.
  milliseconds RestLength() const {
    milliseconds length{0};
    while (rest_.Resting(now_ + length)) ++length;
    return length;
  }
  // Advances the time by `length`.
  void Pass(async::MonotonicTime::duration length) { now_ += length; }

  YieldRest rest_;
  async::MonotonicTime now_ = async::MonotonicTime{} + std::chrono::hours(1);
};

TEST_F(YieldRestTest, QuickYieldsDoNotBackOff) {
  for (int i = 0; i < 1000; ++i) {
    Yield(YieldRest::kTooLong);
    ASSERT_FALSE(rest_.Resting(now_));
  }
}

TEST_F(YieldRestTest, LongYieldStartsAShortBackoff) {
  Yield(YieldRest::kTooLong + microseconds(1));
  EXPECT_EQ(RestLength(), YieldRest::kShortest);
  Pass(YieldRest::kShortest);
  EXPECT_FALSE(rest_.Resting(now_));
}

TEST_F(YieldRestTest, BackoffDoublesUpToABound) {
  milliseconds expected = YieldRest::kShortest;
  for (int i = 0; i < 12; ++i) {
    Yield(kSlice);
    ASSERT_EQ(RestLength(), expected);
    Pass(expected);
    expected = std::min(2 * expected, YieldRest::kLongest);
  }
  EXPECT_EQ(expected, YieldRest::kLongest);
}

TEST_F(YieldRestTest, BackoffIsShortAgainAfterQuickYields) {
  Yield(kSlice);
  Pass(YieldRest::kShortest);
  Yield(kSlice);
  Pass(2 * YieldRest::kShortest);
  // Shorter than the last backoff period.
  Yield(microseconds(5));
  Pass(YieldRest::kShortest);
  Yield(kSlice);
  EXPECT_EQ(RestLength(), 4 * YieldRest::kShortest);
  Pass(4 * YieldRest::kShortest);
  Pass(4 * YieldRest::kShortest);
  Yield(kSlice);
  EXPECT_EQ(RestLength(), YieldRest::kShortest);
}

}  // namespace
}  // namespace hawser::rpc
