#include "ps/top_k_gradients.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::testing::ElementsAre;

std::vector<float> Choose(TopKGradients& gradients,
                          const std::vector<float>& gradient) {
  return gradients
      .Choose(
          Tensor::FromVector(gradient, {static_cast<int64_t>(gradient.size())}))
      .ToVector<float>();
}

TEST(TopKGradientsTest, SmallElementsAreKeptUntilTheyAreLarge) {
  TopKGradients gradients(0.5);
  EXPECT_THAT(Choose(gradients, {3, -4, 1, 2}), ElementsAre(3, -4, 0, 0));
  EXPECT_THAT(Choose(gradients, {0, 0, 1, 3}), ElementsAre(0, 0, 2, 5));
  EXPECT_THAT(Choose(gradients, {0, 0, 0, 0}), ElementsAre(0, 0, 0, 0));
}

TEST(TopKGradientsTest, OfEqualMagnitudesTheFirstAreChosen) {
  TopKGradients gradients(0.5);
  EXPECT_THAT(Choose(gradients, {1, -2, -1, 1}), ElementsAre(1, -2, 0, 0));
  EXPECT_THAT(Choose(gradients, {0, 0, 0, 0}), ElementsAre(0, 0, -1, 1));
}

TEST(TopKGradientsTest, AtLeastOneElementIsSent) {
  TopKGradients gradients(1e-9);
  EXPECT_THAT(Choose(gradients, {1, 3, 2}), ElementsAre(0, 3, 0));
  EXPECT_EQ(gradients.Choose(Tensor::Zeros({0, 4})).shape(),
            tensor::Shape({0, 4}));
}

TEST(TopKGradientsTest, NanIsSentAtOnce) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  TopKGradients gradients(0.3);
  const std::vector<float> chosen = Choose(gradients, {9, nan, 8});
  EXPECT_EQ(chosen[0], 0);
  EXPECT_TRUE(std::isnan(chosen[1]));
}

// Sums of integers are exact: what was sent and what is kept is the whole.
TEST(TopKGradientsTest, NothingIsLost) {
  constexpr size_t kCount = 100;
  TopKGradients gradients(0.1);
  std::mt19937_64 random(1);
  std::vector<float> sent(kCount);
  std::vector<float> whole(kCount);
  for (int step = 0; step < 200; ++step) {
    std::vector<float> gradient(kCount);
    // The last steps only send what was kept.
    for (size_t i = 0; i < kCount && step < 100; ++i) {
      gradient[i] = static_cast<float>(random() % 21) - 10;
      whole[i] += gradient[i];
    }
    const std::vector<float> chosen = Choose(gradients, gradient);
    size_t nonzero = 0;
    for (size_t i = 0; i < kCount; ++i) {
      sent[i] += chosen[i];
      nonzero += chosen[i] != 0 ? 1 : 0;
    }
    EXPECT_LE(nonzero, kCount / 10);
  }
  EXPECT_EQ(sent, whole);
}

}  // namespace
}  // namespace hawser::ps
