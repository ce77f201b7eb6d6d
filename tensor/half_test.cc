#include "tensor/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

float FloatFromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// The value of a binary16 by its definition.
double ValueOfHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24)
      : exponent == 31
          ? (mantissa == 0 ? std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN())
          : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryValueConvertsToFloatAndBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const Half half = Half::FromBits(static_cast<uint16_t>(i));
    const float value = static_cast<float>(half);
    if (std::isnan(ValueOfHalf(half.bits))) {
      EXPECT_TRUE(std::isnan(value)) << i;
      EXPECT_EQ(Half(value).bits, i | 0x200) << i;
    } else {
      EXPECT_EQ(value, ValueOfHalf(half.bits)) << i;
      EXPECT_EQ(std::signbit(value), (i & 0x8000) != 0) << i;
      EXPECT_EQ(Half(value).bits, i);
    }
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  // Between each pair of neighbours: below the middle, the middle, above it.
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const double a = ValueOfHalf(low);
    const double b = ValueOfHalf(low + 1);
    const float middle = static_cast<float>((a + b) / 2);
    const uint16_t even = low % 2 == 0 ? low : low + 1;
    EXPECT_EQ(Half(middle).bits, even);
    EXPECT_EQ(Half(-middle).bits, even | 0x8000);
    EXPECT_EQ(Half(std::nextafter(middle, 0.0f)).bits, low);
    EXPECT_EQ(Half(std::nextafter(middle, 1e9f)).bits, low + 1);
  }
}

TEST(HalfTest, OverflowIsInfinity) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(std::numeric_limits<float>::infinity()).bits, 0x7c00);
}

TEST(BFloat16Test, EveryValueConvertsToFloatAndBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const float value =
        static_cast<float>(BFloat16::FromBits(static_cast<uint16_t>(i)));
    EXPECT_EQ(std::bit_cast<uint32_t>(value), i << 16);
    EXPECT_EQ(BFloat16(value).bits, std::isnan(value) ? i | 0x40 : i);
  }
}

TEST(BFloat16Test, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(FloatFromBits(0x3f808000)).bits, 0x3f80);
  EXPECT_EQ(BFloat16(FloatFromBits(0x3f818000)).bits, 0x3f82);
  EXPECT_EQ(BFloat16(FloatFromBits(0x3f808001)).bits, 0x3f81);
  EXPECT_EQ(BFloat16(FloatFromBits(0x3f817fff)).bits, 0x3f81);
  // The largest float rounds to infinity.
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::lowest()).bits, 0xff80);
}

TEST(BFloat16Test, NanStaysNan) {
  // Payloads in the low half alone would truncate to infinity or round to 0.
  for (const uint32_t bits :
       {0x7f800001u, 0xff80ffffu, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(FloatFromBits(bits)))));
    EXPECT_TRUE(std::isnan(static_cast<float>(Half(FloatFromBits(bits)))));
  }
}

TEST(BFloat16Test, RandomFloatsGoToTheNearest) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    const float value = FloatFromBits(random());
    if (!std::isfinite(value)) continue;
    const BFloat16 rounded(value);
    const float result = static_cast<float>(rounded);
    if (!std::isfinite(result)) continue;
    for (const int step : {-1, 1}) {
      const float other = static_cast<float>(
          BFloat16::FromBits(static_cast<uint16_t>(rounded.bits + step)));
      if (!std::isfinite(other)) continue;
      EXPECT_LE(std::abs(double{result} - value),
                std::abs(double{other} - value));
    }
  }
}

TEST(HalfTest, ComparesAsNumbers) {
  EXPECT_EQ(Half(0.0f), Half(-0.0f));
  EXPECT_EQ(BFloat16(0.0f), BFloat16(-0.0f));
  EXPECT_FALSE(Half(NAN) == Half(NAN));
  EXPECT_FALSE(BFloat16(NAN) == BFloat16(NAN));
}

}  // namespace
}  // namespace hawser::tensor
