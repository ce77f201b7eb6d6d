#include "tensor/shape.h"

#include <limits>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeTest, HoldsItsSizes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.num_elements(), 24);
  EXPECT_EQ(shape.ToString(), "[2, 3, 4]");
  EXPECT_EQ(shape, (Shape{2, 3, 4}));
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_NE(shape, (Shape{2, 3, 5}));
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ(Shape{}.ToString(), "[]");
  EXPECT_EQ((Shape{3, 0}).num_elements(), 0);
}

TEST(ShapeTest, InsertAndEraseMoveTheRest) {
  Shape shape{2, 3};
  shape.Append(5);
  shape.Insert(0, 1);
  EXPECT_EQ(shape, (Shape{1, 2, 3, 5}));
  shape.Erase(1);
  shape.Erase(2);
  EXPECT_EQ(shape, (Shape{1, 3}));
}

TEST(ShapeTest, CreateChecksWhatCannotBeTrusted) {
  EXPECT_THAT(Shape::Create(std::vector<int64_t>{4, 0, 2}),
              IsOkAndHolds(Shape{4, 0, 2}));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>(16, 1)), IsOk());
  EXPECT_THAT(Shape::Create(std::vector<int64_t>(17, 1)),
              StatusIs(kInvalid, HasSubstr("17 dimensions")));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>(1000, 1)),
              StatusIs(kInvalid, HasSubstr("...")));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>{2, -1}),
              StatusIs(kInvalid, HasSubstr("[2, -1] has a negative")));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>{kMax, 2}),
              StatusIs(kInvalid, HasSubstr("int64")));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>{0, kMax, 2}),
              StatusIs(kInvalid));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>{kMax, 0}), IsOk());
}

TEST(ShapeDeathTest, RankBeyondSixteenAborts) {
  EXPECT_DEATH(Shape(std::vector<int64_t>(17, 1)), "rank 17 exceeds 16");
  EXPECT_DEATH((Shape{1, 2})[2], "dimension 2 of a list of 2");
  EXPECT_DEATH((Shape{1, 2})[-1], "dimension -1");
}

TEST(StridesTest, RowMajor) {
  EXPECT_EQ(Strides::RowMajor({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(Strides::RowMajor({2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_EQ(Strides::RowMajor({}), Strides{});
}

TEST(StridesTest, IsRowMajorLooksOnlyAtStridesThatMatter) {
  EXPECT_TRUE(IsRowMajor({2, 3}, {3, 1}));
  EXPECT_FALSE(IsRowMajor({2, 3}, {1, 2}));
  EXPECT_FALSE(IsRowMajor({2, 3}, {6, 2}));
  EXPECT_TRUE(IsRowMajor({2, 1, 3}, {3, 99, 1}));
  EXPECT_TRUE(IsRowMajor({1}, {7}));
  EXPECT_TRUE(IsRowMajor({0, 3}, {99, 99}));
  EXPECT_TRUE(IsRowMajor({3, 0}, {99, 99}));
  EXPECT_TRUE(IsRowMajor({}, {}));
  EXPECT_FALSE(IsRowMajor({4}, {0}));
}

TEST(BroadcastShapesTest, AlignsAtTheLastDimension) {
  EXPECT_THAT(BroadcastShapes({2, 3}, {2, 3}), IsOkAndHolds(Shape{2, 3}));
  EXPECT_THAT(BroadcastShapes({2, 3}, {3}), IsOkAndHolds(Shape{2, 3}));
  EXPECT_THAT(BroadcastShapes({1, 3}, {4, 1, 1}), IsOkAndHolds(Shape{4, 1, 3}));
  EXPECT_THAT(BroadcastShapes({}, {5}), IsOkAndHolds(Shape{5}));
  EXPECT_THAT(BroadcastShapes({0}, {1}), IsOkAndHolds(Shape{0}));
  EXPECT_THAT(BroadcastShapes({2, 0}, {1}), IsOkAndHolds(Shape{2, 0}));
}

TEST(BroadcastShapesTest, NamesBothShapesWhenTheyDiffer) {
  EXPECT_THAT(
      BroadcastShapes({2, 3}, {2, 4}),
      StatusIs(kInvalid, HasSubstr("[2, 3] and [2, 4] do not broadcast: 3 "
                                   "against 4 in dimension 1")));
  EXPECT_THAT(BroadcastShapes({0}, {2}), StatusIs(kInvalid));
  EXPECT_THAT(BroadcastShapes({kMax, 1}, {1, kMax}), StatusIs(kInvalid));
}

TEST(NormalizeDimTest, CountsFromEitherEnd) {
  EXPECT_THAT(NormalizeDim(-1, 3), IsOkAndHolds(2));
  EXPECT_THAT(NormalizeDim(-3, 3), IsOkAndHolds(0));
  EXPECT_THAT(NormalizeDim(2, 3), IsOkAndHolds(2));
  EXPECT_THAT(NormalizeDim(3, 3), StatusIs(kInvalid, HasSubstr("rank 3")));
  EXPECT_THAT(NormalizeDim(-4, 3), StatusIs(kInvalid));
  EXPECT_THAT(NormalizeDim(0, 0), StatusIs(kInvalid));
}

}  // namespace
}  // namespace hawser::tensor
