#include "async/run_time.h"

#include <chrono>

#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(RunTimeTest, IsUnknownBeforeTheFirstRun) {
  EXPECT_FALSE(RunTime().expected().has_value());
}

TEST(RunTimeTest, IsTheFirstRunAtFirst) {
  RunTime time;
  time.Record(milliseconds(3));
  EXPECT_EQ(time.expected(), milliseconds(3));
}

TEST(RunTimeTest, RunWithoutMeasurableTimeIsKnown) {
  RunTime time;
  time.Record(nanoseconds(0));
  EXPECT_EQ(time.expected(), nanoseconds(1));
}

TEST(RunTimeTest, FallsByAnEighthOfTheDifference) {
  RunTime time;
  time.Record(microseconds(80));
  time.Record(microseconds(0));
  EXPECT_NEAR(time.expected()->count(), 70'000, 1);
  time.Record(microseconds(30));
  EXPECT_NEAR(time.expected()->count(), 65'000, 2);
}

TEST(RunTimeTest, ReachesTheTimeOfRunsThatBecameFast) {
  RunTime time;
  time.Record(milliseconds(1));
  for (int i = 0; i < 100; ++i) time.Record(microseconds(5));
  EXPECT_EQ(time.expected(), microseconds(5));
}

TEST(RunTimeTest, OneInterruptedRunAddsAtMostHalfAndFiveMicroseconds) {
  RunTime time;
  time.Record(microseconds(4));
  time.Record(seconds(10));
  EXPECT_EQ(time.expected(), microseconds(4 + 2 + 5));
}

TEST(RunTimeTest, RisesByAQuarterOfASmallDifference) {
  RunTime time;
  time.Record(microseconds(100));
  time.Record(microseconds(120));
  EXPECT_EQ(time.expected(), microseconds(105));
}

TEST(RunTimeTest, IsLongAfterAFewLongRuns) {
  RunTime time;
  time.Record(microseconds(4));
  int runs = 0;
  while (time.expected() < microseconds(50)) {
    time.Record(milliseconds(1));
    ++runs;
  }
  EXPECT_LE(runs, 4);
}

}  // namespace
}  // namespace hawser::async
