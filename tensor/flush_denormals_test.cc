#include "tensor/flush_denormals.h"

#include <limits>

#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

// Half of `x`, computed when it is called.
float HalfOf(float x) {
  volatile float value = x;
  value = value * 0.5f;
  return value;
}

constexpr float kSmallest = std::numeric_limits<float>::min();

TEST(FlushDenormalsTest, DenormalNumbersAreZeroWhileItLives) {
  const float denormal = HalfOf(kSmallest);
  EXPECT_GT(denormal, 0);
  {
    const FlushDenormals flush;
    EXPECT_EQ(HalfOf(kSmallest), 0) << "a result";
    volatile float operand = denormal;
    const float sum = operand + operand;
    EXPECT_EQ(sum, 0) << "an operand";
    EXPECT_EQ(HalfOf(4 * kSmallest), 2 * kSmallest);
    {
      const FlushDenormals again;
      EXPECT_EQ(HalfOf(kSmallest), 0);
    }
    EXPECT_EQ(HalfOf(kSmallest), 0) << "after an inner scope";
  }
  EXPECT_EQ(HalfOf(kSmallest), denormal);
}

}  // namespace
}  // namespace hawser::tensor
