#include "tensor/internal/convert.h"

#include <cmath>
#include <cstdint>
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
  constexpr double kValues[] = {0, 1, -1, 2.5, 100, 254.75, -7.25};
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
                    ConvertElement<From>(kValues[i % 7]);
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
