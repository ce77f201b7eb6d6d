#include "parallel/gradient_bucket.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"

namespace hawser::parallel {
namespace {

using tensor::DType;
using testing::ElementsAre;

TEST(GradientBucketTest, BucketsCloseOnceTheyAreLargeEnough) {
  const std::vector<BucketItem> items = {{DType::kF32, 4},
                                         {DType::kF32, 4},
                                         {DType::kF64, 4},
                                         {DType::kF32, 4},
                                         {DType::kF32, 2}};
  EXPECT_THAT(AssignBuckets(items, {0, 1, 2, 3, 4}, 1, 6),
              ElementsAre(ElementsAre(0), ElementsAre(1, 3), ElementsAre(2),
                          ElementsAre(4)));
  EXPECT_THAT(AssignBuckets(items, {4, 3, 2, 1, 0}, 100, 100),
              ElementsAre(ElementsAre(4, 3, 1, 0), ElementsAre(2)));
}

TEST(GradientBucketTest, DefaultBytesAreAPartOfTheModelWithinLimits) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_EQ(DefaultBucketBytes(0), kMiB);
  EXPECT_EQ(DefaultBucketBytes(16 * kMiB), kMiB);
  EXPECT_EQ(DefaultBucketBytes(64 * kMiB), 4 * kMiB);
  EXPECT_EQ(DefaultBucketBytes(400 * kMiB), 25 * kMiB);
  EXPECT_EQ(DefaultBucketBytes(4096 * kMiB), 25 * kMiB);
}

}  // namespace
}  // namespace hawser::parallel
