#include "autograd/ops/elementwise.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <ostream>
#include <string>
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

constexpr double kPi = std::numbers::pi;

struct UnaryCase {
  std::string name;
  absl::StatusOr<Tensor> (*function)(const Tensor&);
  // The derivative by its formula.
  double (*slope)(double);
  double low = -2;
  double high = 2;
};

std::ostream& operator<<(std::ostream& out, const UnaryCase& c) {
  return out << c.name;
}

class UnaryTest : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryTest, GradientMatchesFiniteDifferences) {
  const UnaryCase& c = GetParam();
  const auto function = [&](std::span<const Tensor> inputs) {
    return c.function(inputs[0]);
  };
  // At most two points are near a kink at 0; these seeds have none.
  for (const Shape& shape : {Shape({2, 3}), Shape({}), Shape({0, 2})}) {
    EXPECT_THAT(
        CheckGradients(function, {RandomVariable(shape, {c.low, c.high, 7})}),
        IsOk())
        << shape;
  }
}

TEST_P(UnaryTest, GradientThroughATransposedViewMatchesFiniteDifferences) {
  const UnaryCase& c = GetParam();
  const auto function =
      [&](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
    absl::StatusOr<Tensor> view = Transpose(inputs[0], 0, 1);
    if (!view.ok()) return view;
    return c.function(*view);
  };
  EXPECT_THAT(
      CheckGradients(function, {RandomVariable({3, 4}, {c.low, c.high, 8})}),
      IsOk());
}

TEST_P(UnaryTest, GradientMatchesFormula) {
  const UnaryCase& c = GetParam();
  const Tensor x = RandomVariable({5}, {c.low, c.high, 9});
  const std::vector<double> dout = {1, -2, 0.5, 3, 0};
  const auto y = c.function(x);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, dout, {x});
  ASSERT_THAT(gradients, IsOk());
  std::vector<double> expected;
  const std::vector<double> values = x.ToVector<double>();
  for (size_t i = 0; i < dout.size(); ++i) {
    expected.push_back(dout[i] * c.slope(values[i]));
  }
  EXPECT_THAT((*gradients)[0], Pointwise(DoubleNear(1e-12), expected));
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(
    All, UnaryTest,
    testing::Values(
        UnaryCase{"Neg", Neg, [](double) { return -1.0; }},
        UnaryCase{"Exp", Exp, [](double x) { return std::exp(x); }},
        UnaryCase{"Log", Log, [](double x) { return 1 / x; }, 0.3, 3},
        UnaryCase{"Sqrt", Sqrt, [](double x) { return 0.5 / std::sqrt(x); },
                  0.3, 3},
        UnaryCase{"Rsqrt", Rsqrt,
                  [](double x) { return -0.5 / (x * std::sqrt(x)); }, 0.3, 3},
        UnaryCase{"Abs", Abs, [](double x) { return x > 0 ? 1.0 : -1.0; }},
        UnaryCase{"Sign", Sign, [](double) { return 0.0; }},
        UnaryCase{"Sin", Sin, [](double x) { return std::cos(x); }},
        UnaryCase{"Cos", Cos, [](double x) { return -std::sin(x); }},
        UnaryCase{"Reciprocal", Reciprocal,
                  [](double x) { return -1 / (x * x); }, 0.3, 3},
        UnaryCase{"Square", Square, [](double x) { return 2 * x; }},
        UnaryCase{"Relu", Relu, [](double x) { return x > 0 ? 1.0 : 0.0; }},
        UnaryCase{"Sigmoid", Sigmoid,
                  [](double x) { return Logistic(x) * Logistic(-x); }},
        UnaryCase{"Tanh", Tanh,
                  [](double x) { return 1 / std::pow(std::cosh(x), 2); }},
        UnaryCase{"Gelu", Gelu,
                  [](double x) {
                    return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
                           x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
                  }},
        UnaryCase{"Silu", Silu,
                  [](double x) {
                    return Logistic(x) + x * Logistic(x) * Logistic(-x);
                  }}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(ElementwiseTest, KinksHaveGradientZero) {
  const Tensor x = Variable({0}, {1});
  for (auto function : {Relu, Abs, Sign}) {
    const auto y = function(x);
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, {1}, {x});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0], ElementsAre(0));
  }
}

TEST(ElementwiseTest, GradientsOfScalarFormsMatchFormulas) {
  const Tensor x = Variable({2, -3}, {2});
  const auto expect = [&](const absl::StatusOr<Tensor>& y, double d0,
                          double d1) {
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, {1, 10}, {x});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0],
                ElementsAre(DoubleNear(d0, 1e-12), DoubleNear(d1, 1e-12)));
  };
  expect(AddScalar(x, 5), 1, 10);
  expect(MulScalar(x, -4), -4, -40);
  expect(PowScalar(x, 3), 12, 270);
  expect(PowScalar(x, 1), 1, 10);
  expect(PowScalar(x, 0), 0, 0);
  expect(PowScalar(x, -1), -0.25, -10.0 / 9);
}

TEST(ElementwiseTest, PowScalarOfZeroHasGradientZeroIfTheFormulaIsNotFinite) {
  const Tensor x = Variable({0}, {1});
  const auto y = PowScalar(x, 0);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1}, {x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(0));
}

struct BinaryCase {
  std::string name;
  absl::StatusOr<Tensor> (*function)(const Tensor&, const Tensor&);
  double (*slope_a)(double a, double b);
  double (*slope_b)(double a, double b);
  double low = -2;
  double high = 2;
};

std::ostream& operator<<(std::ostream& out, const BinaryCase& c) {
  return out << c.name;
}

class BinaryTest : public testing::TestWithParam<BinaryCase> {};

TEST_P(BinaryTest, GradientMatchesFiniteDifferencesInEveryBroadcast) {
  const BinaryCase& c = GetParam();
  const auto function = [&](std::span<const Tensor> inputs) {
    return c.function(inputs[0], inputs[1]);
  };
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {2, 3}}, {{2, 3}, {3}},       {{3}, {2, 3}},
      {{2, 1}, {1, 3}}, {{2, 3}, {}},        {{}, {2, 3}},
      {{}, {}},         {{2, 1, 3}, {4, 1}}, {{0, 3}, {3}}};
  for (const auto& [a, b] : shapes) {
    EXPECT_THAT(
        CheckGradients(function, {RandomVariable(a, {c.low, c.high, 3}),
                                  RandomVariable(b, {c.low, c.high, 4})}),
        IsOk())
        << a << b;
  }
}

TEST_P(BinaryTest, GradientMatchesFormula) {
  const BinaryCase& c = GetParam();
  const Tensor a = RandomVariable({4}, {c.low, c.high, 5});
  const Tensor b = RandomVariable({4}, {c.low, c.high, 6});
  const std::vector<double> dout = {1, -2, 0.5, 3};
  const auto y = c.function(a, b);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, dout, {a, b});
  ASSERT_THAT(gradients, IsOk());
  std::vector<double> da;
  std::vector<double> db;
  for (size_t i = 0; i < dout.size(); ++i) {
    const double x = a.ToVector<double>()[i];
    const double z = b.ToVector<double>()[i];
    da.push_back(dout[i] * c.slope_a(x, z));
    db.push_back(dout[i] * c.slope_b(x, z));
  }
  EXPECT_THAT((*gradients)[0], Pointwise(DoubleNear(1e-12), da));
  EXPECT_THAT((*gradients)[1], Pointwise(DoubleNear(1e-12), db));
}

TEST_P(BinaryTest, OneTensorOnBothSidesGetsBothGradients) {
  const BinaryCase& c = GetParam();
  if (c.name == "Maximum" || c.name == "Minimum") {
    GTEST_SKIP() << "a kink at every element";
  }
  const auto function = [&](std::span<const Tensor> inputs) {
    return c.function(inputs[0], inputs[0]);
  };
  EXPECT_THAT(
      CheckGradients(function, {RandomVariable({3}, {0.5, c.high, 11})}),
      IsOk());
}

TEST_P(BinaryTest, ConstantOperandGetsNoGradient) {
  const BinaryCase& c = GetParam();
  const Tensor a = RandomVariable({3}, {c.low, c.high, 5});
  const Tensor b = Detach(RandomVariable({3}, {c.low, c.high, 6}));
  for (const auto& y : {c.function(a, b), c.function(b, a)}) {
    ASSERT_THAT(y, IsOk());
    EXPECT_TRUE(RequiresGrad(*y));
    EXPECT_THAT(GradientsOf(*y, {1, 1, 1}, {a}), IsOk());
  }
  EXPECT_FALSE(RequiresGrad(*c.function(b, b)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BinaryTest,
    testing::Values(
        BinaryCase{"Add", Add, [](double, double) { return 1.0; },
                   [](double, double) { return 1.0; }},
        BinaryCase{"Sub", Sub, [](double, double) { return 1.0; },
                   [](double, double) { return -1.0; }},
        BinaryCase{"AddScaled",
                   [](const Tensor& a, const Tensor& b) {
                     return AddScaled(a, b, -2.5);
                   },
                   [](double, double) { return 1.0; },
                   [](double, double) { return -2.5; }},
        BinaryCase{"Mul", Mul, [](double, double b) { return b; },
                   [](double a, double) { return a; }},
        BinaryCase{"Div", Div, [](double, double b) { return 1 / b; },
                   [](double a, double b) { return -a / (b * b); }, 0.5, 2},
        BinaryCase{"Maximum", Maximum,
                   [](double a, double b) { return a > b ? 1.0 : 0.0; },
                   [](double a, double b) { return a > b ? 0.0 : 1.0; }},
        BinaryCase{"Minimum", Minimum,
                   [](double a, double b) { return a < b ? 1.0 : 0.0; },
                   [](double a, double b) { return a < b ? 0.0 : 1.0; }},
        BinaryCase{
            "Pow", Pow,
            [](double a, double b) { return b * std::pow(a, b - 1); },
            [](double a, double b) { return std::pow(a, b) * std::log(a); },
            0.5, 2}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(ElementwiseTest, EqualExtremesGetHalfEach) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor b = Variable({1, 1}, {2});
  for (auto function : {Maximum, Minimum}) {
    const auto y = function(a, b);
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, {4, 0}, {a, b});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0], ElementsAre(2, 0));
    EXPECT_THAT((*gradients)[1], ElementsAre(2, 0));
  }
}

TEST(ElementwiseTest, ExtremesPassTheGradientToTheOperandThatIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = Variable({nan, 1, nan, nan}, {4});
  const Tensor b = Variable({1, nan, nan, -1}, {4});
  for (auto function : {Maximum, Minimum}) {
    const auto y = function(a, b);
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, {1, 2, 4, 8}, {a, b});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0], ElementsAre(1, 0, 2, 8));
    EXPECT_THAT((*gradients)[1], ElementsAre(0, 2, 2, 0));
  }
}

TEST(ElementwiseTest, PowAtZeroHasAFiniteGradientIfTheFunctionIsFlat) {
  const Tensor base = Variable({0, 0, 2}, {3});
  const Tensor exponent = Variable({2, 0, 0}, {3});
  const auto y = Pow(base, exponent);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 1, 1}, {base, exponent});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(0, 0, 0));
  EXPECT_THAT((*gradients)[1],
              ElementsAre(0, 0, DoubleNear(std::log(2), 1e-12)));
}

TEST(ElementwiseTest, WherePassesTheGradientToTheSelectedOperand) {
  const Tensor condition =
      Tensor::FromVector<bool>({true, false, true}, Shape({3}));
  const Tensor a = Variable({1, 2, 3}, {3});
  const Tensor b = Variable({4}, {1});
  const auto y = Where(condition, a, b);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, {1, 2, 4}, {a, b});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(1, 0, 4));
  EXPECT_THAT((*gradients)[1], ElementsAre(2));
  EXPECT_THAT(CheckGradients(
                  [&](std::span<const Tensor> inputs) {
                    return Where(condition, inputs[0], inputs[1]);
                  },
                  {RandomVariable({2, 3}), RandomVariable({2, 1})}),
              IsOk());
}

TEST(ElementwiseTest, ReturnsErrorsOfTheOperation) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor b = Variable({1, 2, 3}, {3});
  EXPECT_THAT(Add(a, b), async::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Exp(Tensor()),
              async::StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::autograd
