#include "async/random_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(RandomSourceTest, SameSeedSameStream) {
  RandomSource a(42), b(42), c(43);
  EXPECT_EQ(a.Next(), 1546998764402558742u);
  b.Next();
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
}

TEST(RandomSourceTest, UniformCoversTheUnitInterval) {
  RandomSource random(1);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(RandomSourceTest, BelowIsUnbiased) {
  RandomSource random(7);
  std::array<int, 3> counts = {};
  for (int i = 0; i < 9000; ++i) ++counts[random.Below(3)];
  for (int count : counts) EXPECT_NEAR(count, 3000, 200);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomSourceTest, IsAUniformRandomBitGenerator) {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  RandomSource random(3);
  std::shuffle(values.begin(), values.end(), random);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
}

TEST(RandomSourceTest, EntropySeedsDiffer) {
  EXPECT_NE(RandomSource::FromEntropy().Next(),
            RandomSource::FromEntropy().Next());
}

}  // namespace
}  // namespace hawser::async
