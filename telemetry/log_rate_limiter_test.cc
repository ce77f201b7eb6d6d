#include "telemetry/log_rate_limiter.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

TEST(LogRateLimiterTest, OnceAMinute) {
  using std::chrono::milliseconds;
  const auto start = std::chrono::steady_clock::now();
  LogRateLimiter limit;
  EXPECT_TRUE(limit.ShouldLog(start));
  EXPECT_FALSE(limit.ShouldLog(start));
  EXPECT_FALSE(limit.ShouldLog(start + milliseconds(59'999)));
  EXPECT_TRUE(limit.ShouldLog(start + milliseconds(60'000)));
  // Counted from the last message.
  EXPECT_FALSE(limit.ShouldLog(start + milliseconds(119'999)));
  EXPECT_TRUE(limit.ShouldLog(start + milliseconds(500'000)));
  EXPECT_FALSE(limit.ShouldLog(start + milliseconds(559'999)));
}

}  // namespace
}  // namespace hawser::telemetry
