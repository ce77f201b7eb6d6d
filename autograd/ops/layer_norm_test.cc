#include "autograd/ops/layer_norm.h"

#include <cmath>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using testing::DoubleNear;
using testing::Pointwise;

TEST(LayerNormTest, GradientsMatchFiniteDifferences) {
  for (const int rank : {1, 2}) {
    const tensor::Shape shape =
        rank == 1 ? tensor::Shape({4}) : tensor::Shape({3, 4});
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> inputs) {
                      return LayerNorm(inputs[0], rank, inputs[1], inputs[2]);
                    },
                    {RandomVariable({2, 3, 4}, {.seed = 1}),
                     RandomVariable(shape, {.seed = 2}),
                     RandomVariable(shape, {.seed = 3})}),
                IsOk())
        << rank;
  }
}

TEST(LayerNormTest, WithoutWeightAndBias) {
  EXPECT_THAT(CheckGradients(
                  [](std::span<const Tensor> inputs) {
                    return LayerNorm(inputs[0], 1, Tensor(), Tensor());
                  },
                  {RandomVariable({2, 4})}),
              IsOk());
}

TEST(LayerNormTest, OnlyTheBiasRequiresAGradient) {
  const Tensor x = Detach(RandomVariable({2, 4}));
  const Tensor weight = Detach(RandomVariable({4}));
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return LayerNorm(x, 1, weight, inputs[0]);
                  },
                  {RandomVariable({4})}),
              IsOk());
}

TEST(LayerNormTest, GradientsMatchFormulas) {
  const std::vector<double> x = {1, 2, 4, 9};
  const std::vector<double> w = {1, -1, 2, 0.5};
  const std::vector<double> dy = {1, 2, -1, 3};
  double mean = 0;
  for (double v : x) mean += v / 4;
  double variance = 0;
  for (double v : x) variance += (v - mean) * (v - mean) / 4;
  const double rstd = 1 / std::sqrt(variance + 1e-5);
  // With xhat = (x - mean) rstd and g = dy w:
  // dx = rstd (g - mean(g) - xhat mean(g xhat)).
  double mean_g = 0;
  double mean_gx = 0;
  std::vector<double> xhat(4);
  for (int i = 0; i < 4; ++i) {
    xhat[i] = (x[i] - mean) * rstd;
    mean_g += dy[i] * w[i] / 4;
    mean_gx += dy[i] * w[i] * xhat[i] / 4;
  }
  std::vector<double> dx(4);
  std::vector<double> dw(4);
  for (int i = 0; i < 4; ++i) {
    dx[i] = rstd * (dy[i] * w[i] - mean_g - xhat[i] * mean_gx);
    dw[i] = dy[i] * xhat[i];
  }
  const Tensor tx = Variable(x, {1, 4});
  const Tensor tw = Variable(w, {4});
  const Tensor tb = Variable({0, 0, 0, 0}, {4});
  const auto gradients =
      GradientsOf(*LayerNorm(tx, 1, tw, tb), dy, {tx, tw, tb});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], Pointwise(DoubleNear(1e-10), dx));
  EXPECT_THAT((*gradients)[1], Pointwise(DoubleNear(1e-10), dw));
  EXPECT_THAT((*gradients)[2], Pointwise(DoubleNear(1e-12), dy));
}

}  // namespace
}  // namespace hawser::autograd
