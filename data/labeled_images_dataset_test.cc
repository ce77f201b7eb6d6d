#include "data/labeled_images_dataset.h"

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LabeledImagesDatasetTest, ABatchHasPixelsAndLabels) {
  const LabeledImagesDataset dataset(
      {.images = Tensor::FromVector<uint8_t>({0, 255, 51, 0}, {2, 1, 2}),
       .labels = Tensor::FromVector<int64_t>({4, 9}, {2})});
  EXPECT_EQ(dataset.count(), 2);
  const auto batch = dataset.Fetch(std::vector<int64_t>{1, 0});
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(0.2f, 0, 0, 1));
  EXPECT_THAT((*batch)[1].ToVector<int64_t>(), ElementsAre(9, 4));
  EXPECT_THAT(dataset.Fetch(std::vector<int64_t>{2}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("sample 2")));
}

}  // namespace
}  // namespace hawser::data
