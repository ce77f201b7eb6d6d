#include "ps/row_values.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Numbers(const Tensor& tensor) {
  const float* const data = tensor.data<float>();
  return {data, data + tensor.num_elements()};
}

// 0 to 6, in parts of 3, 0, and 4 elements.
RowValues Parts() {
  return *RowValues::FromParts(
              {Tensor::FromVector({0.0f, 1.0f, 2.0f}, {3}), Tensor::Zeros({0}),
               Tensor::FromVector({3.0f, 4.0f, 5.0f, 6.0f}, {2, 2})})
              .Checked({7, 1}, "gradients");
}

TEST(RowValuesTest, ASliceHasTheMemoryOfTheParts) {
  const Tensor first = Tensor::FromVector({0.0f, 1.0f, 2.0f}, {3});
  const Tensor second = Tensor::FromVector({3.0f, 4.0f, 5.0f}, {1, 3});
  const absl::StatusOr<RowValues> values =
      RowValues::FromParts({first, second}).Checked({2, 3}, "gradients");
  ASSERT_THAT(values, IsOk());
  const std::vector<Tensor> slice = values->Slice(1, 4);
  ASSERT_EQ(slice.size(), 2u);
  EXPECT_EQ(slice[0].data<float>(), first.data<float>() + 1);
  EXPECT_THAT(Numbers(slice[0]), ElementsAre(1, 2));
  EXPECT_EQ(slice[1].data<float>(), second.data<float>());
  EXPECT_THAT(Numbers(slice[1]), ElementsAre(3, 4));
}

TEST(RowValuesTest, SlicesEndAtTheEndsOfParts) {
  const RowValues values = Parts();
  EXPECT_EQ(values.num_elements(), 7);
  for (int begin = 0; begin <= 7; ++begin) {
    for (int end = begin; end <= 7; ++end) {
      std::vector<float> expected;
      for (int i = begin; i < end; ++i) {
        expected.push_back(static_cast<float>(i));
      }
      std::vector<float> sliced;
      for (const Tensor& part : values.Slice(begin, end - begin)) {
        EXPECT_GT(part.num_elements(), 0);
        for (const float number : Numbers(part)) sliced.push_back(number);
      }
      EXPECT_EQ(sliced, expected) << begin << " to " << end;
      EXPECT_EQ(Numbers(values.Join(begin, end - begin)), expected);
    }
  }
}

TEST(RowValuesTest, ATensorThatIsNotContiguousIsCopied) {
  const Tensor rows = Tensor::FromVector({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  const absl::StatusOr<RowValues> values =
      RowValues(*rows.Transpose(0, 1)).Checked({2, 2}, "weights");
  ASSERT_THAT(values, IsOk());
  EXPECT_THAT(Numbers(values->Join(0, 4)), ElementsAre(1, 3, 2, 4));
}

TEST(RowValuesTest, AWrongShapeOrNumberOfElementsIsNamed) {
  EXPECT_THAT(RowValues(Tensor::Zeros({4})).Checked({2, 2}, "gradients"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("gradients must be f32[2, 2]"),
                             HasSubstr("[4]"))));
  EXPECT_THAT(RowValues::FromParts({Tensor::Zeros({4}), Tensor::Zeros({1})})
                  .Checked({2, 2}, "weights"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("weights in 2 parts have 5 elements, not "
                                 "those of f32[2, 2]")));
  EXPECT_THAT(
      RowValues::FromParts({Tensor()}).Checked({2, 2}, "weights"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("undefined")));
}

}  // namespace
}  // namespace hawser::ps
