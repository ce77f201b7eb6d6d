#include "tensor/internal/convert.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::tensor::internal {
namespace {

TEST(ConvertElementTest, FloatToIntegerClamps) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ((ConvertElement<int32_t>(-2.9f)), -2);
  EXPECT_EQ((ConvertElement<int32_t>(3e9f)), INT32_MAX);
  EXPECT_EQ((ConvertElement<int32_t>(2147483648.0f)), INT32_MAX);
  EXPECT_EQ((ConvertElement<int32_t>(2147483646.7)), 2147483646);
  EXPECT_EQ((ConvertElement<int32_t>(-kInf)), INT32_MIN);
  EXPECT_EQ((ConvertElement<int64_t>(1e30)), INT64_MAX);
  EXPECT_EQ((ConvertElement<int64_t>(9007199254740993.0)), 9007199254740992);
  EXPECT_EQ((ConvertElement<uint8_t>(-1.0f)), 0);
  EXPECT_EQ((ConvertElement<uint8_t>(255.9f)), 255);
  EXPECT_EQ((ConvertElement<uint8_t>(Half(300.0f))), 255);
  EXPECT_EQ((ConvertElement<int64_t>(NAN)), 0);
  EXPECT_EQ((ConvertElement<uint8_t>(BFloat16(NAN))), 0);
}

// Half way between two numbers of 16 bits, but for a bit that a float lacks.
TEST(ConvertElementTest, RoundsToNarrowFloatsOnce) {
  constexpr double kLittle = 0x1p-40;
  EXPECT_EQ((ConvertElement<Half>(1 + 0x1p-11 + kLittle)), Half(1 + 0x1p-10f));
  EXPECT_EQ((ConvertElement<Half>(1 + 0x1p-11)), Half(1));
  EXPECT_EQ((ConvertElement<Half>(1 + 0x3p-11 - kLittle)), Half(1 + 0x1p-10f));
  EXPECT_EQ((ConvertElement<Half>(-1 - 0x1p-11 - kLittle)),
            Half(-1 - 0x1p-10f));
  EXPECT_EQ((ConvertElement<Half>(0x1p-25 + 0x1p-70)).bits, 1);
  EXPECT_EQ((ConvertElement<Half>(0x1p-25)).bits, 0);
  EXPECT_EQ((ConvertElement<Half>(65520 - 0x1p-30)), Half(65504));
  EXPECT_EQ((ConvertElement<BFloat16>(1 + 0x1p-8 + kLittle)),
            BFloat16(1 + 0x1p-7f));
  EXPECT_EQ((ConvertElement<BFloat16>((int32_t{1} << 30) + (1 << 22) + 1)),
            BFloat16(0x1p30f + 0x1p23f));
  constexpr int64_t kLarge = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ((ConvertElement<BFloat16>(kLarge)), BFloat16(0x1p62f));
  EXPECT_EQ((ConvertElement<BFloat16>(kLarge + 1)),
            BFloat16(0x1p62f + 0x1p55f));
  EXPECT_EQ((ConvertElement<BFloat16>(-kLarge - 1)),
            BFloat16(-0x1p62f - 0x1p55f));
  EXPECT_EQ((ConvertElement<BFloat16>(INT64_MIN)), BFloat16(-0x1p63f));
}

TEST(ConvertElementTest, ExtremesOfDoublesBecomeInfinityZeroAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const double large : {1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(static_cast<float>(ConvertElement<Half>(large)), kInf);
    EXPECT_EQ(static_cast<float>(ConvertElement<BFloat16>(-large)), -kInf);
  }
  EXPECT_EQ((ConvertElement<Half>(1e-300)).bits, 0);
  EXPECT_EQ((ConvertElement<BFloat16>(-1e-300)).bits, 0x8000);
  EXPECT_EQ((ConvertElement<Half>(-0.0)).bits, 0x8000);
  EXPECT_TRUE(
      std::isnan(static_cast<float>(ConvertElement<Half>(double{NAN}))));
}

TEST(ConvertElementTest, BoolIsWhetherNotZero) {
  EXPECT_TRUE((ConvertElement<bool>(0.25f)));
  EXPECT_TRUE((ConvertElement<bool>(NAN)));
  EXPECT_TRUE((ConvertElement<bool>(int64_t{1} << 40)));
  EXPECT_FALSE((ConvertElement<bool>(-0.0)));
  EXPECT_FALSE((ConvertElement<bool>(Half(-0.0f))));
  EXPECT_EQ((ConvertElement<double>(true)), 1.0);
  EXPECT_EQ(static_cast<float>(ConvertElement<BFloat16>(true)), 1.0f);
}

TEST(ConvertElementTest, IntegersKeepTheirLowBits) {
  EXPECT_EQ((ConvertElement<uint8_t>(int64_t{-1})), 255);
  EXPECT_EQ((ConvertElement<int32_t>((int64_t{1} << 32) + 7)), 7);
}

// Every pair of dtypes, dense and strided, against one element at a time.
TEST(ConvertRowTest, AllPairsMatchElementwiseConversion) {
  constexpr int kCount = 37;
  constexpr double kValues[] = {0,
                                1,
                                -1,
                                2.5,
                                100,
                                254.75,
                                -7.25,
                                1 + 0x1p-8 + 0x1p-40,
                                0x1p30 + 0x1p22 + 1};
  for (int from = 0; from < kNumDTypes; ++from) {
    for (int to = 0; to < kNumDTypes; ++to) {
      VisitDType(static_cast<DType>(from), [&]<class From>() {
        VisitDType(static_cast<DType>(to), [&]<class To>() {
          const ConvertRowFn convert =
              ConvertRow(DTypeOf<To>(), DTypeOf<From>());
          for (const int64_t source_stride : {1, 3}) {
            for (const int64_t dest_stride : {1, 2}) {
              auto source = std::make_unique<From[]>(kCount * 3);
              auto dest = std::make_unique<To[]>(kCount * 2);
              for (int i = 0; i < kCount; ++i) {
                source[i * source_stride] =
                    ConvertElement<From>(kValues[i % std::size(kValues)]);
              }
              convert(source.get(), source_stride, dest.get(), dest_stride,
                      kCount);
              for (int i = 0; i < kCount; ++i) {
                ASSERT_EQ(dest[i * dest_stride],
                          ConvertElement<To>(source[i * source_stride]))
                    << DTypeOf<From>() << " to " << DTypeOf<To>();
              }
            }
          }
        });
      });
    }
  }
}

TEST(ConvertRowTest, BoolBytesThatAreNeitherCountAsOne) {
  const uint8_t source[] = {0, 1, 2, 255};
  float dest[4];
  ConvertRow(DType::kF32, DType::kBool)(source, 1, dest, 1, 4);
  EXPECT_EQ(std::vector<float>(dest, dest + 4),
            (std::vector<float>{0, 1, 1, 1}));
  uint8_t bools[4];
  ConvertRow(DType::kBool, DType::kBool)(source, 1, bools, 1, 4);
  EXPECT_EQ(std::vector<uint8_t>(bools, bools + 4),
            (std::vector<uint8_t>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace hawser::tensor::internal
