#include "autograd/ops/conv2d.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using testing::ElementsAre;

TEST(Conv2dTest, GradientsMatchFiniteDifferences) {
  Conv2dOptions plain;
  Conv2dOptions strided;
  strided.stride = {2, 1};
  strided.padding = {1, 2};
  Conv2dOptions dilated;
  dilated.dilation = {2, 1};
  dilated.padding = {1, 0};
  for (const Conv2dOptions& options : {plain, strided, dilated}) {
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      return Conv2d(inputs[0], inputs[1], inputs[2], options);
                    },
                    {RandomVariable({2, 2, 5, 4}, {.seed = 1}),
                     RandomVariable({3, 2, 2, 3}, {.seed = 2}),
                     RandomVariable({3}, {.seed = 3})}),
                IsOk());
  }
}

TEST(Conv2dTest, GradientsOfGroups) {
  Conv2dOptions options;
  options.groups = 2;
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return Conv2d(inputs[0], inputs[1], Tensor(), options);
                  },
                  {RandomVariable({1, 4, 3, 3}, {.seed = 1}),
                   RandomVariable({2, 2, 2, 2}, {.seed = 2})}),
              IsOk());
}

TEST(Conv2dTest, GradientsMatchFormulas) {
  // One row, one channel: y[i] = x[i] w[0] + x[i + 1] w[1] + bias.
  const Tensor x = Variable({1, 2, 3}, {1, 1, 1, 3});
  const Tensor w = Variable({4, 5}, {1, 1, 1, 2});
  const Tensor bias = Variable({6}, {1});
  const auto y = Conv2d(x, w, bias);
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(y->ToVector<double>(), ElementsAre(20, 29));
  const auto gradients = GradientsOf(*y, {10, 100}, {x, w, bias});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(40, 450, 500));
  EXPECT_THAT((*gradients)[1], ElementsAre(210, 320));
  EXPECT_THAT((*gradients)[2], ElementsAre(110));
}

}  // namespace
}  // namespace hawser::autograd
