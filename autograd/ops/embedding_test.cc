#include "autograd/ops/embedding.h"

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

Tensor Ids(const std::vector<int64_t>& ids) {
  return Tensor::FromVector(ids, Shape({static_cast<int64_t>(ids.size())}));
}

TEST(EmbeddingTest, GradientMatchesFiniteDifferences) {
  EXPECT_THAT(CheckGradients(
                  [](std::span<const Tensor> inputs) {
                    return Embedding(inputs[0], Ids({2, 0, 2, 1}));
                  },
                  {RandomVariable({4, 3})}),
              IsOk());
}

TEST(EmbeddingTest, GradientsOfEqualIdsAreAdded) {
  const Tensor weight = RandomVariable({3, 2});
  const auto gradients = GradientsOf(*Embedding(weight, Ids({2, 0, 2})),
                                     {1, 2, 3, 4, 5, 6}, {weight});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST(EmbeddingBagTest, GradientsMatchFiniteDifferences) {
  for (const BagMode mode : {BagMode::kSum, BagMode::kMean, BagMode::kMax}) {
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      // The second bag is empty.
                      return EmbeddingBag(inputs[0], Ids({2, 0, 3, 1, 0}),
                                          Ids({0, 3, 3}), mode);
                    },
                    {RandomVariable({4, 3})}),
                IsOk());
  }
}

TEST(EmbeddingBagTest, GradientsMatchFormulas) {
  const Tensor weight = Variable({1, 6, 5, 2, 0, 0}, {3, 2});
  const auto expect = [&](BagMode mode, auto matcher) {
    const auto y = EmbeddingBag(weight, Ids({0, 1}), Ids({0}), mode);
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, {10, 20}, {weight});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0], matcher);
  };
  expect(BagMode::kSum, ElementsAre(10, 20, 10, 20, 0, 0));
  expect(BagMode::kMean, ElementsAre(5, 10, 5, 10, 0, 0));
  expect(BagMode::kMax, ElementsAre(0, 20, 10, 0, 0, 0));
}

TEST(EmbeddingTest, IdOutOfRangeIsAnError) {
  EXPECT_THAT(Embedding(RandomVariable({4, 3}), Ids({4})),
              StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace hawser::autograd
