#include "ps/distinct_rows.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ps/ordered_keys.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

constexpr int64_t kWidth = 3;

TEST(DistinctRowsTest, GradientsOfRepeatedKeysAreAddedAndRowsRepeated) {
  const std::vector<uint64_t> keys = {7, 5, 7, 9, 5, 7};
  const OrderedKeys ordered(keys);
  // The gradient of occurrence i is 2^i in each column: its sums tell which
  // occurrences they contain.
  std::vector<float> gradients;
  for (size_t i = 0; i < keys.size(); ++i) {
    gradients.insert(gradients.end(), kWidth, static_cast<float>(1 << i));
  }
  const Tensor sums = CombineGradients(
      ordered,
      Tensor::FromVector(gradients,
                         {static_cast<int64_t>(keys.size()), kWidth}),
      kWidth);
  ASSERT_EQ(sums.shape(), tensor::Shape({3, kWidth}));

  // In two parts, as from two servers.
  const std::vector<Tensor> parts = {*sums.Narrow(0, 0, 1),
                                     *sums.Narrow(0, 1, 2)};
  const Tensor rows =
      ExpandRows(ordered, parts, tensor::Shape({2, 3, kWidth}), kWidth);
  ASSERT_EQ(rows.shape(), tensor::Shape({2, 3, kWidth}));
  const std::vector<float> expected = {37, 18, 37, 8, 18, 37};
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t k = 0; k < kWidth; ++k) {
      EXPECT_EQ(std::as_const(rows).data<float>()[i * kWidth + k], expected[i])
          << "key " << i << ", column " << k;
    }
  }
}

TEST(DistinctRowsTest, ATenthOfRepeatedKeysAreMany) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 10000; ++i) keys.push_back(i);
  EXPECT_FALSE(HasManyRepeats(keys));
  EXPECT_FALSE(HasManyRepeats({}));
  EXPECT_FALSE(HasManyRepeats(std::vector<uint64_t>{4}));
  EXPECT_TRUE(HasManyRepeats(std::vector<uint64_t>{4, 4}));
  for (uint64_t& key : keys) key %= 1000;
  EXPECT_TRUE(HasManyRepeats(keys));
}

}  // namespace
}  // namespace hawser::ps
