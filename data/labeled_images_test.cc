#include "data/labeled_images.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sample i is [[10 i, 10 i + 1]] with label i.
LabeledImages ThreeSamples() {
  return {Tensor::FromVector<uint8_t>({0, 1, 10, 11, 20, 21}, {3, 1, 2}),
          Tensor::FromVector<int64_t>({0, 1, 2}, {3})};
}

TEST(LabeledImagesTest, BatchTakesSamplesInTheGivenOrder) {
  const std::vector<int64_t> order = {2, 0, 2};
  auto batch = GatherBatch(ThreeSamples(), order);
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ(batch->pixels.shape(), tensor::Shape({3, 2}));
  EXPECT_THAT(batch->pixels.ToVector<float>(),
              ElementsAre(20 / 255.f, 21 / 255.f, 0.f, 1 / 255.f, 20 / 255.f,
                          21 / 255.f));
  EXPECT_THAT(batch->labels.ToVector<int64_t>(), ElementsAre(2, 0, 2));
}

TEST(LabeledImagesTest, BatchScalesAllGreyValues) {
  // Of 7 * 41 = 287 pixels, which are not a multiple of the length of vectors.
  std::vector<uint8_t> grey(3 * 287);
  for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(i);
  const LabeledImages set = {Tensor::FromVector<uint8_t>(grey, {3, 7, 41}),
                             Tensor::FromVector<int64_t>({5, 6, 7}, {3})};
  const std::vector<int64_t> order = {1, 0, 2};
  auto batch = GatherBatch(set, order);
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ(batch->pixels.shape(), tensor::Shape({3, 287}));
  const std::vector<float> pixels = batch->pixels.ToVector<float>();
  for (size_t i = 0; i < pixels.size(); ++i) {
    const auto sample = static_cast<size_t>(order[i / 287]);
    EXPECT_EQ(pixels[i],
              static_cast<float>(grey[sample * 287 + i % 287]) / 255.0f)
        << "pixel " << i;
  }
}

TEST(LabeledImagesTest, AbsentSampleIsOutOfRange) {
  for (const int64_t index : {int64_t{3}, int64_t{-1}}) {
    const std::vector<int64_t> indices = {0, index};
    EXPECT_THAT(GatherBatch(ThreeSamples(), indices),
                StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("of 3")));
  }
}

TEST(LabeledImagesTest, RangeSharesMemory) {
  const LabeledImages set = ThreeSamples();
  auto range = Range(set, 1, 3);
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(range->count(), 2);
  EXPECT_EQ(range->images.data<uint8_t>(), set.images.data<uint8_t>() + 2);
  EXPECT_THAT(range->labels.ToVector<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(Range(set, 2, 4), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Range(set, 2, 1), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(LabeledImagesTest, ValidateNamesTheFault) {
  EXPECT_THAT(Validate(ThreeSamples(), 3), IsOk());
  EXPECT_THAT(Validate(ThreeSamples(), 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("label 2 of sample 2")));
  LabeledImages set = ThreeSamples();
  set.labels = Tensor::Zeros({2}, {.dtype = DType::kI64});
  EXPECT_THAT(Validate(set, 3), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("labels must be i64 [3]")));
  set = ThreeSamples();
  set.images = Tensor::Zeros({3, 2}, {.dtype = DType::kU8});
  EXPECT_THAT(Validate(set, 3), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("[n, height, width]")));
}

}  // namespace
}  // namespace hawser::data
