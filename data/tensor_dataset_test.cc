#include "data/tensor_dataset.h"

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(TensorDatasetTest, RowsAreGatheredInTheOrderOfTheIndices) {
  const auto dataset = TensorDataset::Create(
      {Tensor::FromVector<float>({0, 1, 2, 3, 4, 5}, {3, 2}),
       Tensor::FromVector<uint8_t>({7, 8, 9}, {3})});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 3);
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{2, 0, 2});
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({3, 2}));
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(4, 5, 0, 1, 4, 5));
  EXPECT_EQ((*batch)[1].shape(), tensor::Shape({3}));
  EXPECT_THAT((*batch)[1].ToVector<uint8_t>(), ElementsAre(9, 7, 9));
}

TEST(TensorDatasetTest, ColumnsMayHaveAnyStrides) {
  const auto matrix = Tensor::FromVector<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto dataset = TensorDataset::Create({*matrix.T()});
  ASSERT_THAT(dataset, IsOk());
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{1});
  ASSERT_THAT(batch, IsOk());
  EXPECT_THAT((*batch)[0].ToVector<int32_t>(), ElementsAre(2, 5));
}

TEST(TensorDatasetTest, EmptyBatchesAndEmptyRowsAreAllowed) {
  const auto dataset =
      TensorDataset::Create({Tensor::Ones({2, 0}), Tensor::Ones({2, 3})});
  ASSERT_THAT(dataset, IsOk());
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{1});
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({1, 0}));
  const auto none = (*dataset)->Fetch({});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ((*none)[1].shape(), tensor::Shape({0, 3}));
}

TEST(TensorDatasetTest, IndicesOutsideAreRefused) {
  const auto dataset = TensorDataset::Create({Tensor::Ones({2})});
  for (const int64_t index : {-1, 2}) {
    EXPECT_THAT(
        (*dataset)->Fetch(std::vector<int64_t>{0, index}),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a data set of 2")));
  }
}

TEST(TensorDatasetTest, BadColumnsAreRefused) {
  EXPECT_THAT(TensorDataset::Create({}),
              StatusIs(kInvalid, HasSubstr("at least one column")));
  EXPECT_THAT(TensorDataset::Create({Tensor::Ones({2}), Tensor()}),
              StatusIs(kInvalid, HasSubstr("column 1 is undefined")));
  EXPECT_THAT(TensorDataset::Create({Tensor::Ones({})}),
              StatusIs(kInvalid, HasSubstr("column 0 is f32[]")));
  EXPECT_THAT(TensorDataset::Create({Tensor::Ones({2}), Tensor::Ones({3, 2})}),
              StatusIs(kInvalid, HasSubstr("column 1 has 3 samples")));
}

}  // namespace
}  // namespace hawser::data
