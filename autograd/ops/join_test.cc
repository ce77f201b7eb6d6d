#include "autograd/ops/join.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::ElementsAre;

TEST(ConcatTest, GradientsMatchFiniteDifferences) {
  for (const int64_t dim : {1, -2}) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) { return Concat(inputs, dim); },
            {RandomVariable({2, 1, 3}, {.seed = 1}),
             RandomVariable({2, 0, 3}, {.seed = 2}),
             RandomVariable({2, 4, 3}, {.seed = 3})}),
        IsOk());
  }
}

TEST(ConcatTest, GradientsAreSlicesOfTheOutputGradient) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor b = Variable({3}, {1});
  const Tensor constant = Detach(b);
  const auto y = Concat(std::vector<Tensor>{a, constant, b, a}, 0);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 2, 4, 8, 16, 32}, {a, b});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(17, 34));
  EXPECT_THAT((*gradients)[1], ElementsAre(8));
}

TEST(ConcatTest, OfOneTensorIsANewTensor) {
  const Tensor a = Variable({1, 2}, {2});
  const auto y = Concat({&a, 1}, 0);
  ASSERT_THAT(y, IsOk());
  EXPECT_TRUE(IsLeaf(a));
  EXPECT_FALSE(IsLeaf(*y));
}

TEST(StackTest, GradientsMatchFiniteDifferences) {
  for (const int64_t dim : {0, 1, -1}) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) { return Stack(inputs, dim); },
            {RandomVariable({2, 3}, {.seed = 1}),
             RandomVariable({2, 3}, {.seed = 2})}),
        IsOk());
  }
}

TEST(StackTest, GradientsAreSlicesOfTheOutputGradient) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor b = Variable({3, 4}, {2});
  const auto y = Stack(std::vector<Tensor>{a, b}, 1);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 2, 3, 4}, {a, b});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(1, 3));
  EXPECT_THAT((*gradients)[1], ElementsAre(2, 4));
}

TEST(SplitTest, GradientsMatchFiniteDifferences) {
  const std::vector<int64_t> sizes = {1, 3};
  for (const int64_t dim : {1, -1}) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
              auto parts = Split(inputs[0], sizes, dim);
              if (!parts.ok()) return parts.status();
              return Mul((*parts)[0], (*parts)[1]);
            },
            {RandomVariable({2, 4})}),
        IsOk());
  }
}

TEST(SplitTest, UnusedPieceHasGradientZero) {
  const Tensor a = Variable({1, 2, 3}, {3});
  const std::vector<int64_t> sizes = {1, 2};
  auto parts = Split(a, sizes, 0);
  ASSERT_THAT(parts, IsOk());
  const auto gradients = GradientsOf((*parts)[1], {5, 6}, {a});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(0, 5, 6));
}

TEST(JoinTest, ReturnsErrorsOfTheOperation) {
  EXPECT_THAT(Concat({}, 0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Stack(std::vector<Tensor>{RandomVariable({2}), RandomVariable({3})}, 0),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::autograd
