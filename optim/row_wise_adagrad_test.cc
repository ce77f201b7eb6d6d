#include "optim/row_wise_adagrad.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::hawser::tensor::Shape;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kLr = 0.1;
constexpr double kEps = 1e-8;

std::unique_ptr<UpdateRule> Rule() {
  return std::move(MakeRowWiseAdagrad(RowWiseAdagrad({.lr = kLr, .eps = kEps})))
      .value();
}

std::vector<double> Wave(int64_t n, double salt) {
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = std::sin(salt + 1.7 * i);
  return values;
}

// The formula of the header for one row.
void UpdateByFormula(std::vector<double>& parameter, double& sum,
                     const std::vector<double>& gradient, int64_t row,
                     int64_t gradient_row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    squares += std::pow(gradient[gradient_row * width + i], 2);
  }
  sum += squares / static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) {
    parameter[row * width + i] -=
        kLr / (std::sqrt(sum) + kEps) * gradient[gradient_row * width + i];
  }
}

struct Case {
  DType dtype;
  int64_t width;
  double tolerance;
};

class RowWiseAdagradTest : public testing::TestWithParam<Case> {};

TEST_P(RowWiseAdagradTest, WholeParameterIsUpdatedRowByRow) {
  const auto [dtype, width, tolerance] = GetParam();
  constexpr int64_t kRows = 3;
  const Shape shape({kRows, width});
  std::vector<double> expected = Wave(kRows * width, 0.3);
  std::vector<double> sums(kRows, 0);
  Tensor parameter = *Tensor::FromVector(expected, shape).To(dtype);
  ParameterState state;
  for (int t = 0; t < 3; ++t) {
    const std::vector<double> gradient = Wave(kRows * width, t + 1);
    ASSERT_THAT(
        Rule()->Apply(parameter, *Tensor::FromVector(gradient, shape).To(dtype),
                      state, {kLr}),
        IsOk());
    for (int64_t row = 0; row < kRows; ++row) {
      UpdateByFormula(expected, sums[row], gradient, row, row, width);
    }
  }
  EXPECT_THAT(parameter.To(DType::kF64)->ToVector<double>(),
              Pointwise(DoubleNear(tolerance), expected));
  ASSERT_EQ(state.slots.size(), 1u);
  EXPECT_EQ(state.slots[0].second.shape(), Shape({kRows}));
}

// Widths below, at and above a vector, and beyond a block of the 16-bit path.
INSTANTIATE_TEST_SUITE_P(
    Widths, RowWiseAdagradTest,
    testing::Values(Case{DType::kF64, 1, 1e-14}, Case{DType::kF64, 16, 1e-14},
                    Case{DType::kF64, 37, 1e-14}, Case{DType::kF32, 5, 1e-6},
                    Case{DType::kF32, 16, 1e-6}, Case{DType::kF32, 67, 1e-6},
                    Case{DType::kF16, 600, 4e-3},
                    Case{DType::kBF16, 600, 3e-2}));

TEST(RowWiseAdagradTest, OtherRowsStayAsTheyAre) {
  std::vector<double> expected = Wave(8, 0.3);
  std::vector<double> sums(4, 0);
  Tensor parameter = Tensor::FromVector(expected, {4, 2});
  ParameterState state;
  const std::vector<double> gradients = Wave(4, 1);
  for (int t = 0; t < 2; ++t) {
    ASSERT_THAT(
        Rule()->ApplyRows(parameter,
                          Tensor::FromVector(std::vector<int64_t>{3, 1}, {2}),
                          Tensor::FromVector(gradients, {2, 2}), state, {kLr}),
        IsOk());
    UpdateByFormula(expected, sums[3], gradients, 3, 0, 2);
    UpdateByFormula(expected, sums[1], gradients, 1, 1, 2);
  }
  EXPECT_THAT(parameter.ToVector<double>(),
              Pointwise(DoubleNear(1e-14), expected));
  EXPECT_THAT(state.slots[0].second.ToVector<double>(),
              Pointwise(DoubleNear(1e-14), sums));
}

TEST(RowWiseAdagradTest, StateOfAnotherShapeIsRefused) {
  Tensor parameter = Tensor::FromVector(Wave(8, 0.3), {4, 2});
  ParameterState state{1, {{"sum", Tensor::FromVector(Wave(8, 0.1), {4, 2})}}};
  EXPECT_THAT(Rule()->CheckState(parameter, state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sum of the parameter")));
  state.slots[0].second = Tensor::FromVector(Wave(4, 0.1), {4});
  EXPECT_THAT(Rule()->CheckState(parameter, state), IsOk());
}

TEST(RowWiseAdagradTest, MaximizeAscends) {
  const RuleSpec spec = RowWiseAdagrad({.lr = 1, .maximize = true});
  Tensor parameter = Tensor::FromVector(std::vector<double>{0, 0}, {1, 2});
  ParameterState state;
  ASSERT_THAT(
      (*MakeRowWiseAdagrad(spec))
          ->Apply(parameter,
                  Tensor::FromVector(std::vector<double>{1, -1}, {1, 2}), state,
                  {1}),
      IsOk());
  EXPECT_THAT(parameter.ToVector<double>(),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(-1, 1e-9)));
}

}  // namespace
}  // namespace hawser::optim
