#include "benchmarks/measurement.h"

#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

TEST(MeasurementTest, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(MeasurementTest, RatioIsAboveOneIfHawserIsBetter) {
  Measurement rate{.better = Better::kHigher,
                   .values = {30, 20, 10},
                   .peer_values = {10, 10, 10}};
  EXPECT_EQ(Ratio(rate), 2);
  Measurement latency{.better = Better::kLower,
                      .values = {5, 10, 20},
                      .peer_values = {20, 20, 20}};
  EXPECT_EQ(Ratio(latency), 2);
}

TEST(MeasurementTest, RatioIsComputedPerTurn) {
  // Half the speed of the machine in the last two turns does not change it.
  Measurement rate{.better = Better::kHigher,
                   .values = {30, 15, 15},
                   .peer_values = {10, 5, 5}};
  EXPECT_EQ(Ratio(rate), 3);
}

}  // namespace
}  // namespace hawser::benchmarks
