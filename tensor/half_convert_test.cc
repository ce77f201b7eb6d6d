#include "tensor/half_convert.h"

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

// Random bit patterns, and the edges of every rounding decision.
std::vector<float> Floats() {
  std::vector<float> floats;
  std::mt19937 random(11);
  for (int i = 0; i < 200000; ++i) {
    floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
  for (uint32_t high = 0; high <= 0xffff; ++high) {
    for (const uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u,
                               0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      floats.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return floats;
}

TEST(HalfConvertTest, FloatsConvertAsOneByOne) {
  const std::vector<float> floats = Floats();
  const int64_t count = static_cast<int64_t>(floats.size());
  std::vector<Half> halves(floats.size());
  std::vector<BFloat16> bfloats(floats.size());
  FloatToHalf(floats.data(), halves.data(), count);
  FloatToBFloat16(floats.data(), bfloats.data(), count);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i].bits, Half(floats[i]).bits)
        << std::hex << std::bit_cast<uint32_t>(floats[i]);
    ASSERT_EQ(bfloats[i].bits, BFloat16(floats[i]).bits)
        << std::hex << std::bit_cast<uint32_t>(floats[i]);
  }
}

TEST(HalfConvertTest, AllSixteenBitValuesConvertAsOneByOne) {
  std::vector<Half> halves;
  std::vector<BFloat16> bfloats;
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    halves.push_back(Half::FromBits(static_cast<uint16_t>(i)));
    bfloats.push_back(BFloat16::FromBits(static_cast<uint16_t>(i)));
  }
  std::vector<float> from_half(halves.size());
  std::vector<float> from_bfloat(halves.size());
  HalfToFloat(halves.data(), from_half.data(), 65536);
  BFloat16ToFloat(bfloats.data(), from_bfloat.data(), 65536);
  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(from_half[i]),
              std::bit_cast<uint32_t>(static_cast<float>(halves[i])));
    ASSERT_EQ(std::bit_cast<uint32_t>(from_bfloat[i]),
              std::bit_cast<uint32_t>(static_cast<float>(bfloats[i])));
  }
}

TEST(HalfConvertTest, ShortAndUnalignedArraysTouchNothingElse) {
  for (int64_t count = 0; count < 40; ++count) {
    for (int64_t offset = 0; offset < 3; ++offset) {
      std::vector<float> floats(offset + count, 1.5f);
      std::vector<BFloat16> bfloats(offset + count + 1, BFloat16(9.0f));
      std::vector<Half> halves(offset + count + 1, Half(9.0f));
      FloatToBFloat16(floats.data() + offset, bfloats.data() + offset, count);
      FloatToHalf(floats.data() + offset, halves.data() + offset, count);
      for (int64_t i = 0; i <= offset + count; ++i) {
        const float expected = i >= offset && i < offset + count ? 1.5f : 9.0f;
        ASSERT_EQ(static_cast<float>(bfloats[i]), expected);
        ASSERT_EQ(static_cast<float>(halves[i]), expected);
      }
    }
  }
}

}  // namespace
}  // namespace hawser::tensor
