#include "autograd/ops/pool.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using testing::ElementsAre;

TEST(PoolTest, GradientsMatchFiniteDifferences) {
  Pool2dOptions even;
  even.kernel = {2, 2};
  even.stride = {2, 2};
  Pool2dOptions overlapping;
  overlapping.kernel = {3, 2};
  overlapping.stride = {1, 2};
  overlapping.padding = {1, 1};
  for (auto function : {MaxPool2d, AvgPool2d}) {
    for (const Pool2dOptions& options : {even, overlapping}) {
      EXPECT_THAT(CheckGradients(
                      [&](std::span<const Tensor> inputs) {
                        return function(inputs[0], options);
                      },
                      {RandomVariable({2, 2, 4, 4})}),
                  IsOk());
    }
  }
}

TEST(PoolTest, GradientsMatchFormulas) {
  Pool2dOptions options;
  options.kernel = {1, 2};
  options.stride = {1, 2};
  const Tensor x = Variable({1, 5, 7, 2}, {1, 1, 1, 4});
  const auto max = GradientsOf(*MaxPool2d(x, options), {10, 20}, {x});
  ASSERT_THAT(max, IsOk());
  EXPECT_THAT((*max)[0], ElementsAre(0, 10, 20, 0));
  const auto average = GradientsOf(*AvgPool2d(x, options), {10, 20}, {x});
  ASSERT_THAT(average, IsOk());
  EXPECT_THAT((*average)[0], ElementsAre(5, 5, 10, 10));
}

}  // namespace
}  // namespace hawser::autograd
