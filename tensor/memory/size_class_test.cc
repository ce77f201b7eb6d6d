#include "tensor/memory/size_class.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hawser::tensor::internal {
namespace {

TEST(SizeClassTest, ClassesAreOrderedAndTight) {
  for (int i = 0; i < kNumSizeClasses; ++i) {
    const size_t bytes = SizeClassBytes(i);
    EXPECT_EQ(bytes % 64, 0u);
    EXPECT_EQ(SizeClassOf(bytes).index, i);
    EXPECT_EQ(SizeClassOf(bytes).block_bytes, bytes);
    if (i + 1 < kNumSizeClasses) {
      EXPECT_EQ(SizeClassOf(bytes + 1).index, i + 1);
      EXPECT_LE(SizeClassBytes(i + 1), bytes + std::max<size_t>(64, bytes / 4));
    }
  }
  EXPECT_EQ(SizeClassOf(0).index, 0);
  EXPECT_EQ(SizeClassOf(1).index, 0);
  EXPECT_EQ(SizeClassBytes(kNumSizeClasses - 1), kLargestCachedBlockBytes);
  EXPECT_EQ(SizeClassBytes(kNumThreadSizeClasses - 1),
            kLargestThreadBlockBytes);
}

}  // namespace
}  // namespace hawser::tensor::internal
