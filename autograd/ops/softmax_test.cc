#include "autograd/ops/softmax.h"

#include <cmath>
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
using testing::DoubleNear;
using testing::Pointwise;

std::vector<double> SoftmaxOf(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += std::exp(value);
  std::vector<double> y;
  for (double value : x) y.push_back(std::exp(value) / sum);
  return y;
}

TEST(SoftmaxTest, GradientsMatchFiniteDifferences) {
  for (auto function : {Softmax, LogSoftmax}) {
    for (const int64_t dim : {0, 1, -1}) {
      EXPECT_THAT(CheckGradients(
                      [&](std::span<const Tensor> inputs) {
                        return function(inputs[0], dim);
                      },
                      {RandomVariable({2, 3, 4})}),
                  IsOk())
          << dim;
    }
  }
}

TEST(SoftmaxTest, GradientsMatchFormulas) {
  const std::vector<double> values = {0.1, 1.2, -0.4};
  const std::vector<double> dout = {1, 2, 4};
  const std::vector<double> p = SoftmaxOf(values);
  const Tensor x = Variable(values, {3});
  double dot = 0;
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    dot += dout[i] * p[i];
    sum += dout[i];
  }
  std::vector<double> softmax;
  std::vector<double> log_softmax;
  for (int i = 0; i < 3; ++i) {
    softmax.push_back(p[i] * (dout[i] - dot));
    log_softmax.push_back(dout[i] - p[i] * sum);
  }
  const auto gradients = GradientsOf(*Softmax(x, 0), dout, {x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], Pointwise(DoubleNear(1e-12), softmax));
  const auto log_gradients = GradientsOf(*LogSoftmax(x, 0), dout, {x});
  ASSERT_THAT(log_gradients, IsOk());
  EXPECT_THAT((*log_gradients)[0], Pointwise(DoubleNear(1e-12), log_softmax));
}

TEST(SoftmaxCrossEntropyTest, GradientMatchesFiniteDifferences) {
  const Tensor labels = Tensor::FromVector<int64_t>({2, 0, 1}, Shape({3}));
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return SoftmaxCrossEntropy(inputs[0], labels);
                  },
                  {RandomVariable({3, 4})}),
              IsOk());
}

TEST(SoftmaxCrossEntropyTest, GradientMatchesFormula) {
  const std::vector<double> row = {0.1, 1.2, -0.4};
  const Tensor logits = Variable({0.1, 1.2, -0.4, 0.1, 1.2, -0.4}, {2, 3});
  const Tensor labels = Tensor::FromVector<int64_t>({1, 2}, Shape({2}));
  const auto gradients =
      GradientsOf(*SoftmaxCrossEntropy(logits, labels), {10}, {logits});
  ASSERT_THAT(gradients, IsOk());
  // (softmax - one hot) / rows.
  const std::vector<double> p = SoftmaxOf(row);
  const std::vector<double> expected = {
      5 * p[0], 5 * (p[1] - 1), 5 * p[2], 5 * p[0], 5 * p[1], 5 * (p[2] - 1)};
  EXPECT_THAT((*gradients)[0], Pointwise(DoubleNear(1e-12), expected));
}

TEST(SoftmaxCrossEntropyTest, LabelOutOfRangeIsAnError) {
  EXPECT_THAT(SoftmaxCrossEntropy(RandomVariable({1, 3}),
                                  Tensor::FromVector<int64_t>({3}, Shape({1}))),
              StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace hawser::autograd
