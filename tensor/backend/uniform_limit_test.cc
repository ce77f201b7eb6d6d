#include "tensor/backend/uniform_limit.h"

#include <limits>

#include "gtest/gtest.h"
#include "tensor/dtype.h"

namespace hawser::tensor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(UniformLimitTest, IsTheNumberBeforeTheUpperEnd) {
  EXPECT_EQ(UniformLimit(DType::kF64, 0, 1), 1 - 0x1p-53);
  EXPECT_EQ(UniformLimit(DType::kF32, 0, 1), 1 - 0x1p-24);
  EXPECT_EQ(UniformLimit(DType::kF16, 0, 1), 1 - 0x1p-11);
  EXPECT_EQ(UniformLimit(DType::kBF16, 0, 1), 1 - 0x1p-8);
  EXPECT_EQ(UniformLimit(DType::kF32, -3, -2.5), -2.5 - 0x1p-22);
  EXPECT_EQ(UniformLimit(DType::kF16, -3, -2.5), -2.5 - 0x1p-9);
  EXPECT_EQ(UniformLimit(DType::kBF16, -3, -2.5), -2.5 - 0x1p-6);
  EXPECT_EQ(UniformLimit(DType::kF16, -1, 0), -0x1p-24);
}

TEST(UniformLimitTest, IsBelowAnUpperEndThatTheDTypeLacks) {
  // Rounded up to 258, and down to 256.
  EXPECT_EQ(UniformLimit(DType::kBF16, 0, 257.5), 256);
  EXPECT_EQ(UniformLimit(DType::kBF16, 0, 256.5), 255);
  EXPECT_EQ(UniformLimit(DType::kF16, 0, 1e6), 65504);
}

TEST(UniformLimitTest, IsTheLowerEndWhereNothingElseIsInTheRange) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(UniformLimit(dtype, 4, 4), 4);
  }
  EXPECT_EQ(UniformLimit(DType::kBF16, 256, 256.5), 256);
  EXPECT_EQ(UniformLimit(DType::kF16, -1e6, -1e5), -kInf);
}

}  // namespace
}  // namespace hawser::tensor
