#include "autograd/ops/matmul.h"

#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/in_place.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::Shape;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

TEST(MatMulTest, GradientsMatchFiniteDifferencesForAllRanks) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3}, {3}},
      {{2, 3}, {3}},
      {{3}, {3, 2}},
      {{2, 3}, {3, 4}},
      {{2, 2, 3}, {3, 4}},
      {{2, 3}, {2, 3, 2}},
      {{2, 2, 3}, {2, 3, 2}},
      {{2, 1, 2, 3}, {3, 3, 2}},
      {{2, 1, 2, 3}, {1, 2, 3, 2}},
      {{3}, {2, 3, 2}},
      {{2, 2, 3}, {3}},
      {{0, 2, 3}, {3, 4}},
  };
  for (const auto& [a, b] : shapes) {
    EXPECT_THAT(
        CheckGradients(
            [](std::span<const Tensor> inputs) {
              return MatMul(inputs[0], inputs[1]);
            },
            {RandomVariable(a, {.seed = 1}), RandomVariable(b, {.seed = 2})}),
        IsOk())
        << a << b;
  }
}

TEST(MatMulTest, GradientsOfTransposedViews) {
  EXPECT_THAT(
      CheckGradients(
          [](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
            const auto a = Transpose(inputs[0], 0, 1);
            const auto b = Transpose(inputs[1], 0, 1);
            return MatMul(*a, *b);
          },
          {RandomVariable({3, 2}), RandomVariable({4, 3}, {.seed = 2})}),
      IsOk());
}

TEST(MatMulTest, GradientsMatchFormulas) {
  // d(AB): dA = dout B^T, dB = A^T dout.
  const Tensor a = Variable({1, 2, 3, 4}, {2, 2});
  const Tensor b = Variable({5, 6, 7, 8}, {2, 2});
  const auto y = MatMul(a, b);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 0, 0, 2}, {a, b});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(5, 7, 12, 16));
  EXPECT_THAT((*gradients)[1], ElementsAre(1, 6, 2, 8));
}

TEST(LinearTest, GradientsMatchFiniteDifferences) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
    for (const Shape& shape : {Shape({3}), Shape({2, 3}), Shape({2, 2, 3})}) {
      EXPECT_THAT(CheckGradients(
                      [&](std::span<const Tensor> inputs) {
                        return Linear(inputs[0], inputs[1], inputs[2],
                                      activation);
                      },
                      {RandomVariable(shape, {.seed = 5}),
                       RandomVariable({4, 3}, {.seed = 6}),
                       RandomVariable({4}, {.seed = 7})}),
                  IsOk())
          << shape;
    }
  }
}

TEST(LinearTest, GradientsMatchFormulas) {
  const Tensor x = Variable({1, 2}, {1, 2});
  const Tensor w = Variable({1, 1, 1, -1}, {2, 2});
  const Tensor bias = Variable({0.5, 0}, {2});
  const auto y = Linear(x, w, bias, Activation::kRelu);
  ASSERT_THAT(y, IsOk());
  // Before the activation 3.5 and -1: only the first output has a gradient.
  EXPECT_THAT(y->ToVector<double>(), ElementsAre(3.5, 0));
  const auto gradients = GradientsOf(*y, {10, 100}, {x, w, bias});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(10, 10));
  EXPECT_THAT((*gradients)[1], ElementsAre(10, 20, 0, 0));
  EXPECT_THAT((*gradients)[2], ElementsAre(10, 0));
}

TEST(LinearTest, GradientsOfSomeInputsOnly) {
  for (int wanted = 0; wanted < 3; ++wanted) {
    std::vector<Tensor> inputs = {RandomVariable({2, 3}, {.seed = 5}),
                                  RandomVariable({4, 3}, {.seed = 6}),
                                  RandomVariable({4}, {.seed = 7})};
    const Tensor variable = inputs[wanted];
    for (Tensor& input : inputs) input = Detach(input);
    EXPECT_THAT(CheckGradients(
                    [&](std::span<const Tensor> variables) {
                      std::vector<Tensor> all = inputs;
                      all[wanted] = variables[0];
                      return Linear(all[0], all[1], all[2], Activation::kRelu);
                    },
                    {variable}),
                IsOk())
        << wanted;
  }
}

TEST(LinearTest, WithoutBias) {
  EXPECT_THAT(CheckGradients(
                  [](std::span<const Tensor> inputs) {
                    return Linear(inputs[0], inputs[1], Tensor());
                  },
                  {RandomVariable({2, 3}), RandomVariable({4, 3})}),
              IsOk());
}

TEST(LinearTest, InputIsNotKeptForAFrozenWeight) {
  const Tensor x = RandomVariable({2, 3});
  const Tensor w = Detach(RandomVariable({4, 3}));
  Tensor hidden = *Reshape(x, {2, 3});
  const auto y = Linear(hidden, w, Tensor());
  ASSERT_THAT(y, IsOk());
  // A tensor that the backward step does not read may be written.
  {
    const NoGradGuard no_grad;
    ASSERT_THAT(hidden.CopyFrom(Tensor::Zeros({2, 3}, {tensor::DType::kF64})),
                IsOk());
  }
  EXPECT_THAT(GradientsOf(*y, std::vector<double>(8, 1), {x}), IsOk());
}

TEST(LinearTest, ReluOutputWrittenInPlaceIsAnError) {
  const Tensor w = RandomVariable({4, 3});
  Tensor y = *Linear(RandomVariable({2, 3}), w, Tensor(), Activation::kRelu);
  y.BumpVersion();
  EXPECT_THAT(GradientsOf(y, std::vector<double>(8, 1), {w}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("LinearBackward")));
}

}  // namespace
}  // namespace hawser::autograd
