#include "ps/storage/rows/stochastic_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/half.h"

namespace hawser::ps {
namespace {

template <class T>
class StochasticRoundingTest : public testing::Test {};
using Types = testing::Types<tensor::Half, tensor::BFloat16>;
TYPED_TEST_SUITE(StochasticRoundingTest, Types);

template <class T>
std::vector<float> Round(float number, size_t count) {
  const std::vector<float> source(count, number);
  std::vector<T> rounded(count);
  RoundStochastically(source.data(), count, 5, rounded.data());
  std::vector<float> result;
  for (T value : rounded) result.push_back(static_cast<float>(value));
  return result;
}

// From a fraction of the smallest number to large ones, in both signs.
TYPED_TEST(StochasticRoundingTest, IsRightOnAverageAndOffByLessThanOneStep) {
  constexpr size_t kCount = 40'000;
  for (float number : {3.14159f, -0.1f, 1000.7f, -1.0f / 3, 1.7e-5f, 4.9e-6f,
                       -3.1e-8f, 1e-8f, 65000.3f}) {
    double sum = 0;
    float low = INFINITY;
    float high = -INFINITY;
    for (float rounded : Round<TypeParam>(number, kCount)) {
      sum += rounded;
      low = std::min(low, rounded);
      high = std::max(high, rounded);
    }
    EXPECT_LE(low, number);
    EXPECT_GE(high, number);
    const double step = double{high} - low;
    // Four standard errors of the mean of a choice between two numbers.
    EXPECT_NEAR(sum / kCount, number, 4 * step * 0.5 / std::sqrt(kCount))
        << number;
    const float nearest = static_cast<float>(TypeParam(number));
    EXPECT_TRUE(nearest == low || nearest == high) << number;
  }
}

TYPED_TEST(StochasticRoundingTest, ExactNumbersStayTheSame) {
  for (float number : {0.0f, -0.0f, 1.0f, -2.5f, 1024.0f, 0x1p-14f, 0x1p-24f,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()}) {
    for (float rounded : Round<TypeParam>(number, 100)) {
      EXPECT_EQ(rounded, number);
      EXPECT_EQ(std::signbit(rounded), std::signbit(number));
    }
  }
  EXPECT_TRUE(std::isnan(Round<TypeParam>(NAN, 1)[0]));
}

TYPED_TEST(StochasticRoundingTest, TheSameArgumentsGiveTheSameChoice) {
  EXPECT_EQ(Round<TypeParam>(0.1f, 100), Round<TypeParam>(0.1f, 100));
}

}  // namespace
}  // namespace hawser::ps
