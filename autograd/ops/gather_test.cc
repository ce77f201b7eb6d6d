#include "autograd/ops/gather.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::Shape;
using testing::ElementsAre;

Tensor Index(const std::vector<int64_t>& values, const Shape& shape) {
  return Tensor::FromVector(values, shape);
}

TEST(GatherTest, GradientsMatchFiniteDifferences) {
  const Tensor index = Index({0, 2, 2, 1}, {2, 2});
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return Gather(inputs[0], 1, index);
                  },
                  {RandomVariable({2, 3})}),
              IsOk());
  // The index is smaller than the tensor in the other dim.
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return Gather(inputs[0], -2, index);
                  },
                  {RandomVariable({3, 4})}),
              IsOk());
}

TEST(GatherTest, GradientsOfElementsReadTwiceAreAdded) {
  const Tensor a = Variable({1, 2, 3}, {3});
  const auto gradients =
      GradientsOf(*Gather(a, 0, Index({2, 0, 2}, {3})), {1, 2, 4}, {a});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(2, 0, 5));
}

TEST(ScatterAddTest, GradientsMatchFiniteDifferences) {
  // The index is smaller than the source, whose other elements are not read.
  const Tensor index = Index({0, 2, 2, 1}, {2, 2});
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return ScatterAdd(inputs[0], 1, index, inputs[1]);
                  },
                  {RandomVariable({2, 3}, {.seed = 1}),
                   RandomVariable({3, 2}, {.seed = 2})}),
              IsOk());
}

TEST(ScatterAddTest, GradientsMatchFormulas) {
  const Tensor a = Variable({1, 2, 3}, {3});
  const Tensor src = Variable({4, 5}, {2});
  const auto y = ScatterAdd(a, 0, Index({2, 2}, {2}), src);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 2, 4}, {a, src});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(1, 2, 4));
  EXPECT_THAT((*gradients)[1], ElementsAre(4, 4));
}

TEST(IndexSelectTest, GradientsMatchFiniteDifferences) {
  for (const int64_t dim : {0, -1}) {
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      return IndexSelect(inputs[0], dim, Index({1, 0, 1}, {3}));
                    },
                    {RandomVariable({2, 2})}),
                IsOk());
  }
}

TEST(IndexSelectTest, GradientMatchesFormula) {
  const Tensor a = Variable({1, 2, 3, 4}, {2, 2});
  const auto gradients =
      GradientsOf(*IndexSelect(a, 0, Index({1, 1}, {2})), {1, 2, 3, 4}, {a});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(0, 0, 4, 6));
}

TEST(IndexAddTest, GradientsMatchFiniteDifferences) {
  EXPECT_THAT(
      CheckGradients(
          [&](std::span<const Tensor> inputs) {
            return IndexAdd(inputs[0], 1, Index({1, 0, 1}, {3}), inputs[1]);
          },
          {RandomVariable({2, 2}, {.seed = 1}),
           RandomVariable({2, 3}, {.seed = 2})}),
      IsOk());
}

TEST(IndexAddTest, GradientsMatchFormulas) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor src = Variable({3, 4, 5}, {3});
  const auto y = IndexAdd(a, 0, Index({1, 1, 0}, {3}), src);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 2}, {a, src});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(1, 2));
  EXPECT_THAT((*gradients)[1], ElementsAre(2, 2, 1));
}

TEST(GatherTest, IndexOutOfRangeIsAnError) {
  EXPECT_THAT(Gather(RandomVariable({3}), 0, Index({3}, {1})),
              StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace hawser::autograd
