#include "async/tell_limit.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(TellLimitTest, OnceAMinute) {
  using std::chrono::milliseconds;
  const auto start = std::chrono::steady_clock::now();
  TellLimit limit;
  EXPECT_TRUE(limit.MayTell(start));
  EXPECT_FALSE(limit.MayTell(start));
  EXPECT_FALSE(limit.MayTell(start + milliseconds(59'999)));
  EXPECT_TRUE(limit.MayTell(start + milliseconds(60'000)));
  // Counted from the last message.
  EXPECT_FALSE(limit.MayTell(start + milliseconds(119'999)));
  EXPECT_TRUE(limit.MayTell(start + milliseconds(500'000)));
  EXPECT_FALSE(limit.MayTell(start + milliseconds(559'999)));
}

}  // namespace
}  // namespace hawser::async
