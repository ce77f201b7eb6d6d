#include "column.h"

#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tensor/tensor.h"

namespace {

using hawser::Tensor;

TEST(ColumnTest, ReadsAcrossRows) {
  const auto matrix = Tensor::FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const absl::StatusOr<std::vector<float>> column = Column(matrix, 1);
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(*column, (std::vector<float>{2, 5}));
}

TEST(ColumnTest, ColumnBeyondTheLastIsAnError) {
  const auto matrix = Tensor::FromVector<float>({1, 2}, {1, 2});
  EXPECT_EQ(Column(matrix, 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(ColumnTest, VectorHasNoColumns) {
  const auto vector = Tensor::FromVector<float>({1, 2}, {2});
  EXPECT_EQ(Column(vector, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
