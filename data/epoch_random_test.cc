#include "data/epoch_random.h"

#include <algorithm>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::testing::ElementsAre;

// Fixed, so that a job continues in the same order with a newer build.
TEST(EpochRandomTest, NumbersAreTheSameInEveryBuild) {
  EXPECT_THAT(EpochRandom(7, 3).Permutation(10),
              ElementsAre(2, 8, 0, 1, 3, 6, 4, 5, 9, 7));
  EXPECT_EQ(EpochRandom(7, 3).Below(uint64_t{1} << 62), 2288071494651738755u);
  EXPECT_DOUBLE_EQ(EpochRandom(7, 3).Uniform(), 0.87403660426517849);
}

TEST(EpochRandomTest, EveryBitOfSeedAndEpochCounts) {
  const auto first = [](uint64_t seed, int64_t epoch) {
    return EpochRandom(seed, epoch).Below(uint64_t{1} << 62);
  };
  EXPECT_NE(first(1, 0), first(0, 1));
  EXPECT_NE(first(0, 0), first(uint64_t{1} << 63, 0));
  EXPECT_NE(first(0, 0), first(0, int64_t{1} << 40));
  EXPECT_NE(first(0, 0), first(0, -1));
}

TEST(EpochRandomTest, APermutationHasEachNumberOnce) {
  for (int64_t count = 0; count < 70; ++count) {
    std::vector<int64_t> order = EpochRandom(1, count).Permutation(count);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, EpochOrder(count, std::nullopt, 0));
  }
}

TEST(EpochRandomTest, EachPlaceOfAPermutationIsUniform) {
  constexpr int kCount = 5;
  constexpr int kDraws = 20000;
  constexpr double kExpected = 4000;
  int drawn[kCount][kCount] = {};
  for (int64_t epoch = 0; epoch < kDraws; ++epoch) {
    const auto order = EpochRandom(11, epoch).Permutation(kCount);
    for (size_t i = 0; i < kCount; ++i) ++drawn[i][order[i]];
  }
  // The standard deviation is 57.
  for (const auto& place : drawn) {
    for (const int times : place) EXPECT_NEAR(times, kExpected, 290);
  }
}

TEST(EpochRandomTest, UniformNumbersFillTheUnitInterval) {
  EpochRandom random(3, 0);
  double least = 1, greatest = 0, sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double number = random.Uniform();
    least = std::min(least, number);
    greatest = std::max(greatest, number);
    sum += number;
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.01);
  EXPECT_GT(greatest, 0.99);
  EXPECT_LT(greatest, 1);
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

TEST(EpochRandomTest, WithoutASeedTheOrderIsTheNaturalOne) {
  EXPECT_THAT(EpochOrder(4, std::nullopt, 9), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(EpochOrder(0, std::nullopt, 9), ElementsAre());
  EXPECT_EQ(EpochOrder(40, 5, 2), EpochRandom(5, 2).Permutation(40));
}

}  // namespace
}  // namespace hawser::data
