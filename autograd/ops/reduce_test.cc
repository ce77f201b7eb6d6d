#include "autograd/ops/reduce.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using tensor::Shape;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

using Reduction = absl::StatusOr<Tensor> (*)(const Tensor&, DimSpan, bool);

std::vector<double> GradientOf(const absl::StatusOr<Tensor>& y,
                               const std::vector<double>& dout,
                               const Tensor& x) {
  EXPECT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, dout, {x});
  EXPECT_THAT(gradients, IsOk());
  return (*gradients)[0];
}

TEST(ReduceTest, GradientsMatchFiniteDifferencesOverAnyDims) {
  const std::vector<std::vector<int64_t>> dim_lists = {{},   {0},    {1},
                                                       {-1}, {0, 2}, {2, 1, 0}};
  for (Reduction reduce :
       {Reduction{Sum}, Reduction{Mean}, Reduction{Max}, Reduction{Min}}) {
    for (const std::vector<int64_t>& dims : dim_lists) {
      for (const bool keepdim : {false, true}) {
        EXPECT_THAT(CheckGradients(
                        [&](std::span<const Tensor> inputs) {
                          return reduce(inputs[0], dims, keepdim);
                        },
                        {RandomVariable({2, 3, 4}, {.seed = 21})}),
                    IsOk())
            << dims.size() << keepdim;
      }
    }
  }
}

TEST(ReduceTest, GradientsMatchFormulas) {
  const Tensor x = Variable({1, 5, 3, 4, 2, 6}, {2, 3});
  EXPECT_THAT(GradientOf(autograd::Sum(x, {1}), {10, 20}, x),
              ElementsAre(10, 10, 10, 20, 20, 20));
  EXPECT_THAT(GradientOf(autograd::Sum(x), {7}, x),
              ElementsAre(7, 7, 7, 7, 7, 7));
  EXPECT_THAT(GradientOf(autograd::Mean(x, {0}), {2, 4, 6}, x),
              ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(GradientOf(autograd::Max(x, {1}), {10, 20}, x),
              ElementsAre(0, 10, 0, 0, 0, 20));
  EXPECT_THAT(GradientOf(autograd::Min(x, {0}, true), {1, 2, 3}, x),
              ElementsAre(1, 0, 3, 0, 2, 0));
}

TEST(ReduceTest, EqualExtremesShareTheGradientEvenly) {
  const Tensor x = Variable({3, 1, 3, 1}, {4});
  EXPECT_THAT(GradientOf(autograd::Max(x), {1}, x),
              ElementsAre(0.5, 0, 0.5, 0));
  EXPECT_THAT(GradientOf(autograd::Min(x), {1}, x),
              ElementsAre(0, 0.5, 0, 0.5));
}

TEST(ReduceTest, SumToRepeatsTheGradient) {
  const Tensor x = RandomVariable({2, 3});
  EXPECT_THAT(GradientOf(autograd::SumTo(x, {2, 1}), {1, 2}, x),
              ElementsAre(1, 1, 1, 2, 2, 2));
  for (const Shape& shape :
       {Shape({3}), Shape({2, 1}), Shape({}), Shape({1, 1}), Shape({2, 3})}) {
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      return autograd::SumTo(inputs[0], shape);
                    },
                    {RandomVariable({2, 3})}),
                IsOk());
  }
}

TEST(ReduceTest, NormGradients) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.5, 1.0, 2.0, 3.0, infinity}) {
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      return autograd::Norm(inputs[0], p);
                    },
                    {Variable({0.3, -0.7, 1.1, -0.4}, {2, 2})}),
                IsOk())
        << p;
  }
  const Tensor x = Variable({3, -4}, {2});
  EXPECT_THAT(GradientOf(autograd::Norm(x, 2), {10}, x),
              Pointwise(DoubleNear(1e-12), {6.0, -8.0}));
  EXPECT_THAT(GradientOf(autograd::Norm(x, 1), {10}, x), ElementsAre(10, -10));
  EXPECT_THAT(GradientOf(autograd::Norm(x, infinity), {10}, x),
              ElementsAre(0, -10));
  const Tensor zero = Variable({0, 0}, {2});
  EXPECT_THAT(GradientOf(autograd::Norm(zero, 2), {10}, zero),
              ElementsAre(0, 0));
}

TEST(ReduceTest, NormGradientsDoNotDependOnTheScale) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double scale : {1e-300, 1e-200, 1.0, 1e200, 1e300}) {
    const Tensor x = Variable({3 * scale, -4 * scale, 0}, {3});
    EXPECT_THAT(GradientOf(autograd::Norm(x, 2), {10}, x),
                Pointwise(DoubleNear(1e-12), {6.0, -8.0, 0.0}))
        << scale;
    EXPECT_THAT(GradientOf(autograd::Norm(x, 3), {std::cbrt(91.0 * 91.0)}, x),
                Pointwise(DoubleNear(1e-12), {9.0, -16.0, 0.0}))
        << scale;
    EXPECT_THAT(GradientOf(autograd::Norm(x, infinity), {10}, x),
                ElementsAre(0, -10, 0))
        << scale;
  }
}

}  // namespace
}  // namespace hawser::autograd
