#include "optim/ftrl.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::tensor::DType;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// Algorithm 1 of McMahan et al., KDD 2013, for one coordinate, in the paper's
// order: the weight is computed from z and n before each gradient.
class PaperCoordinate {
 public:
  explicit PaperCoordinate(const FtrlOptions& options) : o_(options) {}

  double Weight() const {
    if (std::abs(z_) <= o_.l1) return 0;
    const double sign = z_ < 0 ? -1 : 1;
    return -(z_ - sign * o_.l1) / ((o_.beta + std::sqrt(n_)) / o_.lr + o_.l2);
  }

  // Keeps the weight.
  void ChangeRate(double lr) {
    const double w = Weight();
    o_.lr = lr;
    if (w == 0) return;
    const double curvature = (o_.beta + std::sqrt(n_)) / lr + o_.l2;
    z_ = -std::copysign(std::abs(w) * curvature + o_.l1, w);
  }

  void Take(double g) {
    const double w = Weight();
    const double sigma = (std::sqrt(n_ + g * g) - std::sqrt(n_)) / o_.lr;
    z_ += g - sigma * w;
    n_ += g * g;
  }

 private:
  FtrlOptions o_;
  double z_ = 0;
  double n_ = 0;
};

TEST(FtrlTest, StepsEqualThoseOfThePaper) {
  for (const FtrlOptions& options :
       {FtrlOptions{.lr = 0.1}, FtrlOptions{.lr = 0.5, .beta = 0.2, .l1 = 0.7},
        FtrlOptions{.lr = 0.05, .beta = 1, .l1 = 0.3, .l2 = 2}}) {
    constexpr int kWidth = 11;
    const auto rule = MakeFtrl(Ftrl(options));
    ASSERT_THAT(rule, IsOk());
    Tensor parameter = Tensor::Zeros({kWidth}, {tensor::DType::kF64});
    ParameterState state;
    std::vector<PaperCoordinate> paper(kWidth, PaperCoordinate(options));
    for (int t = 0; t < 20; ++t) {
      std::vector<double> gradient(kWidth);
      std::vector<double> expected(kWidth);
      for (int i = 0; i < kWidth; ++i) {
        // One of the last two coordinates gets rare gradients, the other none.
        gradient[i] = i == 10                ? 0
                      : i == 9 && t % 4 != 0 ? 0
                                             : std::sin(3.0 * i + t * 0.7);
        paper[i].Take(gradient[i]);
        expected[i] = paper[i].Weight();
      }
      ASSERT_THAT(
          (*rule)->Apply(parameter, Tensor::FromVector(gradient, {kWidth}),
                         state, {options.lr}),
          IsOk());
      ASSERT_THAT(parameter.ToVector<double>(),
                  Pointwise(DoubleNear(1e-13), expected))
          << "step " << t;
    }
  }
}

TEST(FtrlTest, LearningRateChangesKeepWeights) {
  const FtrlOptions options = {.lr = 0.5, .beta = 0.2, .l1 = 0.7, .l2 = 0.3};
  const auto rule = MakeFtrl(Ftrl(options));
  ASSERT_THAT(rule, IsOk());
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kF64, 1e-13), std::pair(DType::kF32, 1e-5)}) {
    constexpr int kWidth = 11;
    Tensor parameter = Tensor::Zeros({kWidth}, {dtype});
    ParameterState state;
    std::vector<PaperCoordinate> paper(kWidth, PaperCoordinate(options));
    bool has_zero = false;
    for (int t = 0; t < 30; ++t) {
      const double lr = 0.5 / (1 + t / 5);
      std::vector<double> gradient(kWidth), expected(kWidth);
      for (int i = 0; i < kWidth; ++i) {
        // In every fifth step nearly 0, while the learning rate falls.
        gradient[i] = t % 5 == 0 ? 1e-9 : std::sin(3.0 * i + t * 0.7);
        const double before = paper[i].Weight();
        paper[i].ChangeRate(lr);
        paper[i].Take(gradient[i]);
        expected[i] = paper[i].Weight();
        if (t % 5 == 0) {
          ASSERT_NEAR(expected[i], before, 1e-8);
        }
        has_zero |= expected[i] == 0;
      }
      ASSERT_THAT(
          (*rule)->Apply(parameter,
                         *Tensor::FromVector(gradient, {kWidth}).To(dtype),
                         state, {lr}),
          IsOk());
      ASSERT_THAT(parameter.To(DType::kF64)->ToVector<double>(),
                  Pointwise(DoubleNear(tolerance), expected))
          << dtype << " step " << t;
    }
    EXPECT_TRUE(has_zero);
    const std::vector<double> moved =
        parameter.To(DType::kF64)->ToVector<double>();
    ASSERT_THAT((*rule)->Apply(parameter, Tensor::Zeros({kWidth}, {dtype}),
                               state, {1e-3}),
                IsOk());
    EXPECT_EQ(parameter.To(DType::kF64)->ToVector<double>(), moved);
  }
}

TEST(FtrlTest, InitialValueIsKeptWithoutCurvature) {
  const auto rule = MakeFtrl(Ftrl({.lr = 0.1, .beta = 0}));
  Tensor parameter = Tensor::Full({1}, 2);
  ParameterState state;
  ASSERT_THAT((*rule)->Apply(parameter, Tensor::Zeros({1}), state, {0.1}),
              IsOk());
  EXPECT_THAT(parameter.ToVector<float>(), ElementsAre(2));
}

TEST(FtrlTest, L1MakesExactZeros) {
  const auto rule = MakeFtrl(Ftrl({.lr = 1, .l1 = 1}));
  Tensor parameter = Tensor::Zeros({2}, {tensor::DType::kF64});
  ParameterState state;
  ASSERT_THAT(
      (*rule)->Apply(parameter, Tensor::FromVector<double>({0.9, -3}, {2}),
                     state, {1}),
      IsOk());
  EXPECT_THAT(parameter.ToVector<double>(), ElementsAre(0, 0.5));
}

// The first closed form must reproduce the initial value.
TEST(FtrlTest, NonzeroInitialValueIsKeptUntilTheFirstGradient) {
  const auto rule = MakeFtrl(Ftrl({.lr = 0.1, .l1 = 0.5, .l2 = 0.3}));
  const std::vector<double> start = {0.5, -2, 1e-3};
  Tensor parameter = Tensor::FromVector(start, {3});
  ParameterState state;
  for (int t = 0; t < 3; ++t) {
    ASSERT_THAT(
        (*rule)->Apply(parameter, Tensor::Zeros({3}, {tensor::DType::kF64}),
                       state, {0.1}),
        IsOk());
    EXPECT_THAT(parameter.ToVector<double>(),
                Pointwise(DoubleNear(1e-14), start));
  }
  ASSERT_THAT(
      (*rule)->Apply(parameter, Tensor::FromVector<double>({1, 1, 1}, {3}),
                     state, {0.1}),
      IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_LT(parameter.ToVector<double>()[i], start[i]);
  }
}

}  // namespace
}  // namespace hawser::optim
