#include "tensor/dtype.h"

#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

TEST(DTypeTest, NamesAreUniqueAndReadBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(DTypeName(DType::kBF16), "bf16");
  EXPECT_EQ(DTypeFromName("F32"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
}

TEST(DTypeTest, SixteenBitElementsAreAddedUpInF32) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(SumDType(dtype), ItemBytes(dtype) == 2 ? DType::kF32 : dtype);
  }
}

TEST(DTypeTest, VisitorGetsTheElementType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    VisitDType(dtype, [&]<class T>() {
      EXPECT_EQ(DTypeOf<T>(), dtype);
      EXPECT_EQ(ItemBytes(dtype), static_cast<int64_t>(sizeof(T)));
      EXPECT_EQ(IsFloatingPoint(dtype), !std::is_integral_v<T>);
    });
  }
}

}  // namespace
}  // namespace hawser::tensor
