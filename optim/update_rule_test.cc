#include "optim/update_rule.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/ftrl.h"
#include "optim/make_update_rule.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::BFloat16;
using ::hawser::tensor::DType;
using ::hawser::tensor::Half;
using ::hawser::tensor::Shape;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::unique_ptr<UpdateRule> Rule(const RuleSpec& spec) {
  return std::move(MakeUpdateRule(spec)).value();
}

std::unique_ptr<UpdateRule> Rule(const std::string& text) {
  return Rule(*ParseRuleSpec(text));
}

Tensor F64(const std::vector<double>& values, const Shape& shape) {
  return Tensor::FromVector(values, shape);
}

StepOptions DefaultStep(const UpdateRule& rule) {
  return {rule.learning_rate()};
}

// n numbers, roughly in [-1, 1], which depend on `salt`.
std::vector<double> Wave(int64_t n, double salt) {
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = std::sin(salt + 1.7 * i);
  return values;
}

class EveryRuleTest : public testing::TestWithParam<const char*> {
 protected:
  // Trains `n` elements for three steps in `dtype` and returns them.
  std::vector<double> Train(int64_t n, DType dtype) {
    const std::unique_ptr<UpdateRule> rule = Rule(std::string(GetParam()));
    Tensor parameter = *F64(Wave(n, 0.3), {n}).To(dtype);
    ParameterState state;
    for (int t = 0; t < 3; ++t) {
      const Tensor gradient = *F64(Wave(n, t + 1), {n}).To(dtype);
      EXPECT_THAT(rule->Apply(parameter, gradient, state, DefaultStep(*rule)),
                  IsOk());
    }
    EXPECT_EQ(state.step, 3);
    EXPECT_EQ(state.slots.size(), rule->slots().size());
    for (const auto& [name, slot] : state.slots) {
      EXPECT_EQ(slot.dtype(), dtype == DType::kF64 ? DType::kF64 : DType::kF32);
    }
    return parameter.To(DType::kF64)->ToVector<double>();
  }
};

// Elements after the last full vector are updated like the others.
TEST_P(EveryRuleTest, LengthDoesNotChangeAnElement) {
  if (GetParam()[0] == 'L') GTEST_SKIP() << "LAMB couples the elements";
  const std::vector<double> whole = Train(64, DType::kF64);
  for (int64_t n = 0; n < 20; ++n) {
    EXPECT_THAT(
        Train(n, DType::kF64),
        Pointwise(DoubleNear(1e-14),
                  std::vector<double>(whole.begin(), whole.begin() + n)));
  }
}

TEST_P(EveryRuleTest, F32AgreesWithF64) {
  EXPECT_THAT(Train(37, DType::kF32),
              Pointwise(DoubleNear(2e-6), Train(37, DType::kF64)));
}

TEST_P(EveryRuleTest, SixteenBitTypesAgreeWithF64ToTheirPrecision) {
  // Longer than a block of the 16-bit path.
  const std::vector<double> expected = Train(1100, DType::kF64);
  EXPECT_THAT(Train(1100, DType::kF16), Pointwise(DoubleNear(4e-3), expected));
  EXPECT_THAT(Train(1100, DType::kBF16), Pointwise(DoubleNear(3e-2), expected));
}

// They would slow each later step down.
TEST_P(EveryRuleTest, StateHasNoDenormalNumbers) {
  const std::unique_ptr<UpdateRule> rule = Rule(std::string(GetParam()));
  Tensor parameter = Tensor::Ones({20});
  ParameterState state;
  for (int t = 0; t < 600; ++t) {
    // Numbers whose squares, or a small part of which, are denormal.
    const float gradient = t < 3 ? std::pow(10.0f, -36.0f + 8 * t) : 0;
    ASSERT_THAT(rule->Apply(parameter, Tensor::Full({20}, gradient), state,
                            DefaultStep(*rule)),
                IsOk());
    for (const auto& [name, slot] : state.slots) {
      for (const float number : slot.ToVector<float>()) {
        ASSERT_NE(std::fpclassify(number), FP_SUBNORMAL)
            << name << " in step " << t << ": " << number;
      }
    }
  }
}

TEST_P(EveryRuleTest, MaximizeEqualsTheStepForTheNegatedGradient) {
  RuleSpec spec = *ParseRuleSpec(GetParam());
  spec.Set("weight_decay", 0);
  if (!MakeUpdateRule(spec).ok()) spec = *ParseRuleSpec(GetParam());
  const std::unique_ptr<UpdateRule> descend = Rule(spec);
  spec.Set("maximize", 1);
  const std::unique_ptr<UpdateRule> climb = Rule(spec);
  Tensor a = F64({1, -2, 3}, {3});
  Tensor b = *a.Clone();
  ParameterState state_a;
  ParameterState state_b;
  for (double t = 1; t < 4; ++t) {
    ASSERT_THAT(descend->Apply(a, F64({t, -1, 0.5}, {3}), state_a,
                               DefaultStep(*descend)),
                IsOk());
    ASSERT_THAT(
        climb->Apply(b, F64({-t, 1, -0.5}, {3}), state_b, DefaultStep(*climb)),
        IsOk());
  }
  EXPECT_EQ(a.ToVector<double>(), b.ToVector<double>());
}

INSTANTIATE_TEST_SUITE_P(
    UpdateRuleTest, EveryRuleTest,
    testing::Values(
        "SGD(lr=0.1)", "SGD(lr=0.1,momentum=0.9,nesterov=1)", "Adam(lr=0.01)",
        "Adam(lr=0.01,amsgrad=1)", "AdamW(lr=0.01)", "AdamW(lr=0.01,amsgrad=1)",
        "Adamax(lr=0.01)", "Adagrad(lr=0.01)", "Adadelta", "RMSprop(lr=0.001)",
        "RMSprop(lr=0.001,centered=1)", "RMSprop(lr=0.001,momentum=0.9)",
        "RMSprop(lr=0.001,centered=1,momentum=0.9)", "Rprop(lr=0.01)",
        "FTRL(lr=0.1,l1=0.01,l2=0.1)", "LAMB(lr=0.01)"));

TEST(UpdateRuleTest, ApplyBumpsTheVersionAndWritesInPlace) {
  const auto rule = Rule(Sgd({.lr = 1}));
  Tensor parameter = F64({1, 2}, {2});
  const Tensor other_handle = parameter;
  const uint64_t before = parameter.version();
  ParameterState state;
  ASSERT_THAT(rule->Apply(parameter, F64({1, 1}, {2}), state, {0.5}), IsOk());
  EXPECT_GT(parameter.version(), before);
  EXPECT_THAT(other_handle.ToVector<double>(), ElementsAre(0.5, 1.5));
}

TEST(UpdateRuleTest, StridedGradientIsAccepted) {
  const auto rule = Rule(Sgd({.lr = 1}));
  Tensor parameter = F64({0, 0, 0, 0}, {2, 2});
  ParameterState state;
  ASSERT_THAT(
      rule->Apply(parameter, *F64({1, 2, 3, 4}, {2, 2}).T(), state, {1}),
      IsOk());
  EXPECT_THAT(parameter.ToVector<double>(), ElementsAre(-1, -3, -2, -4));
}

TEST(UpdateRuleTest, InvalidTensorsAreRejectedAndUnchanged) {
  const auto rule = Rule(Adam({}));
  Tensor parameter = F64({1, 2}, {2});
  Tensor whole_numbers = Tensor::FromVector<int64_t>({1, 2}, {2});
  Tensor undefined;
  Tensor strided = *F64({1, 2, 3, 4}, {2, 2}).Select(1, 0);
  ParameterState state;
  const auto refused = [&](Tensor p, const Tensor& g) {
    EXPECT_THAT(
        rule->Apply(p, g, state, {0.1}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Adam: ")));
  };
  refused(undefined, parameter);
  refused(whole_numbers, whole_numbers);
  refused(strided, F64({1, 2}, {2}));
  refused(parameter, undefined);
  refused(parameter, F64({1, 2}, {1, 2}));
  refused(parameter, Tensor::Ones({2}));
  EXPECT_EQ(state.step, 0);
  EXPECT_TRUE(state.slots.empty());
  EXPECT_THAT(parameter.ToVector<double>(), ElementsAre(1, 2));
}

TEST(UpdateRuleTest, StateOfAnotherParameterIsRejected) {
  const auto rule = Rule(Adam({}));
  Tensor two = F64({1, 2}, {2});
  Tensor three = F64({1, 2, 3}, {3});
  ParameterState state;
  ASSERT_THAT(rule->Apply(two, two, state, {0.1}), IsOk());
  EXPECT_THAT(rule->Apply(three, three, state, {0.1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("exp_avg"), HasSubstr("[3]"))));
  EXPECT_EQ(state.step, 1);
}

TEST(UpdateRuleTest, MomentumEnabledLaterGetsItsSlot) {
  Tensor parameter = F64({1}, {1});
  const Tensor gradient = F64({1}, {1});
  ParameterState state;
  ASSERT_THAT(Rule(Sgd({.lr = 1}))->Apply(parameter, gradient, state, {0.1}),
              IsOk());
  const auto rule = Rule(Sgd({.lr = 1, .momentum = 0.5}));
  ASSERT_THAT(rule->Apply(parameter, gradient, state, {0.1}), IsOk());
  ASSERT_THAT(rule->Apply(parameter, gradient, state, {0.1}), IsOk());
  EXPECT_EQ(state.step, 3);
  EXPECT_NEAR(parameter.ToVector<double>()[0], 1 - 0.1 - 0.1 - 0.15, 1e-15);
}

// Three rows of width 2. Row 0 gets one gradient and row 2 gets two.
class RowsTest : public testing::TestWithParam<const char*> {
 protected:
  const Tensor ids_ = Tensor::FromVector<int64_t>({2, 0, 2}, {3});
  const Tensor gradients_ = F64({1, 2, 3, 4, -3, 0.5}, {3, 2});
  const Tensor summed_ = F64({3, 4, -2, 2.5}, {2, 2});
};

TEST_P(RowsTest, OnlyListedRowsAreUpdatedWithDuplicatesSummed) {
  const auto rule = Rule(std::string(GetParam()));
  Tensor table = F64({1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor rows = F64({1, 2, 5, 6}, {2, 2});
  ParameterState table_state;
  ParameterState rows_state;
  const Tensor both = Tensor::FromVector<int64_t>({0, 1}, {2});
  for (int t = 1; t <= 3; ++t) {
    ASSERT_THAT(rule->ApplyRows(table, ids_, gradients_, table_state, {0.1}),
                IsOk());
    ASSERT_THAT(rule->ApplyRows(rows, both, summed_, rows_state, {0.1}),
                IsOk());
  }
  EXPECT_EQ(table_state.step, 3);
  const std::vector<double> expected = rows.ToVector<double>();
  EXPECT_THAT(
      table.ToVector<double>(),
      ElementsAre(expected[0], expected[1], 3, 4, expected[2], expected[3]));
}

INSTANTIATE_TEST_SUITE_P(UpdateRuleTest, RowsTest,
                         testing::Values("SGD(lr=1)", "Adagrad(lr_decay=0.1)",
                                         "SparseAdam", "FTRL(lr=1,l1=0.1)"));

// Results of torch.optim.SparseAdam: rows (1, 2), (3, 4), (5, 6); gradients of
// rows 2, 0, 2 are t times (1, 2), (3, 4), (-3, 0.5); row 0 only when t is odd.
TEST(UpdateRuleTest, SparseAdamEqualsThatOfPyTorch) {
  const auto rule = Rule(SparseAdam({.lr = 0.1}));
  Tensor table = F64({1, 2, 3, 4, 5, 6}, {3, 2});
  ParameterState state;
  for (double t = 1; t <= 4; ++t) {
    const bool odd = t == 1 || t == 3;
    const Tensor ids = odd ? Tensor::FromVector<int64_t>({2, 0, 2}, {3})
                           : Tensor::FromVector<int64_t>({2, 2}, {2});
    const Tensor gradients =
        odd ? F64({t, 2 * t, 3 * t, 4 * t, -3 * t, t / 2}, {3, 2})
            : F64({t, 2 * t, -3 * t, t / 2}, {2, 2});
    ASSERT_THAT(
        rule->ApplyRows(table, ids, gradients, state, DefaultStep(*rule)),
        IsOk());
  }
  EXPECT_THAT(table.ToVector<double>(),
              Pointwise(DoubleNear(1e-12),
                        std::vector<double>{
                            0.821211940664012, 1.8212119373721811, 3.0, 4.0,
                            5.388359322456404, 5.611640671651699}));
}

// The same for torch.optim.Adagrad with lr_decay 0.1.
TEST(UpdateRuleTest, SparseAdagradEqualsThatOfPyTorch) {
  const auto rule = Rule(Adagrad({.lr = 0.1, .lr_decay = 0.1}));
  Tensor table = F64({1, 2, 3, 4, 5, 6}, {3, 2});
  ParameterState state;
  for (double t = 1; t <= 4; ++t) {
    const bool odd = t == 1 || t == 3;
    const Tensor ids = odd ? Tensor::FromVector<int64_t>({2, 0, 2}, {3})
                           : Tensor::FromVector<int64_t>({2, 2}, {2});
    const Tensor gradients =
        odd ? F64({t, 2 * t, 3 * t, 4 * t, -3 * t, t / 2}, {3, 2})
            : F64({t, 2 * t, -3 * t, t / 2}, {2, 2});
    ASSERT_THAT(
        rule->ApplyRows(table, ids, gradients, state, DefaultStep(*rule)),
        IsOk());
  }
  EXPECT_THAT(table.ToVector<double>(),
              Pointwise(DoubleNear(1e-12),
                        std::vector<double>{
                            0.8209430584999572, 1.8209430584989155, 3.0, 4.0,
                            5.304303545852688, 5.695696454145667}));
}

TEST(UpdateRuleTest, NarrowDuplicatesAreSummedInF32) {
  const auto rule = Rule(Sgd({.lr = 1}));
  Tensor table = Tensor::Zeros({1, 1}, {.dtype = DType::kBF16});
  // In bf16, 256 + 1 gives 256.
  Tensor gradients = *F64({256, 1, 1, 1, 1}, {5, 1}).To(DType::kBF16);
  const Tensor ids = Tensor::Zeros({5}, {.dtype = DType::kI64});
  ParameterState state;
  ASSERT_THAT(rule->ApplyRows(table, ids, gradients, state, {1}), IsOk());
  EXPECT_EQ(static_cast<float>(table.ToVector<BFloat16>()[0]), -260);
}

TEST(UpdateRuleTest, EmptyIdsCountAStepWithoutChanges) {
  const auto rule = Rule(SparseAdam({}));
  Tensor table = F64({1, 2}, {2, 1});
  ParameterState state;
  ASSERT_THAT(rule->ApplyRows(table, Tensor::Empty({0}, {.dtype = DType::kI64}),
                              Tensor::Empty({0, 1}, {.dtype = DType::kF64}),
                              state, {1}),
              IsOk());
  EXPECT_EQ(state.step, 1);
  EXPECT_THAT(table.ToVector<double>(), ElementsAre(1, 2));
}

TEST(UpdateRuleTest, RowOutsideTheTableIsOutOfRange) {
  const auto rule = Rule(Sgd({.lr = 1}));
  Tensor table = F64({1, 2}, {2, 1});
  ParameterState state;
  for (const int64_t id : {int64_t{-1}, int64_t{2}}) {
    EXPECT_THAT(
        rule->ApplyRows(table, Tensor::FromVector<int64_t>({0, id}, {2}),
                        F64({1, 1}, {2, 1}), state, {1}),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr(std::to_string(id))));
  }
  EXPECT_THAT(table.ToVector<double>(), ElementsAre(1, 2));
  EXPECT_EQ(state.step, 0);
}

TEST(UpdateRuleTest, RulesRejectUnsupportedKindsOfGradients) {
  Tensor table = F64({1, 2}, {2, 1});
  const Tensor ids = Tensor::FromVector<int64_t>({0}, {1});
  const Tensor gradient = F64({1}, {1, 1});
  ParameterState state;
  for (const char* text :
       {"SGD(lr=1,momentum=0.9)", "SGD(lr=1,weight_decay=0.1)", "Adam",
        "Adagrad(weight_decay=0.1)", "AdamW", "Adamax", "Adadelta", "RMSprop",
        "Rprop", "LAMB"}) {
    EXPECT_THAT(
        Rule(std::string(text))->ApplyRows(table, ids, gradient, state, {1}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("cannot update rows")))
        << text;
  }
  EXPECT_THAT(
      Rule(SparseAdam({}))->Apply(table, table, state, {1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SparseAdam")));
}

TEST(UpdateRuleTest, InvalidRowArgumentsAreRejected) {
  const auto rule = Rule(Ftrl({.lr = 1}));
  Tensor table = F64({1, 2}, {2, 1});
  Tensor scalar = Tensor::Scalar(1, {.dtype = DType::kF64});
  const Tensor ids = Tensor::FromVector<int64_t>({0}, {1});
  const Tensor gradient = F64({1}, {1, 1});
  ParameterState state;
  const auto refused = [&](Tensor p, const Tensor& i, const Tensor& g) {
    EXPECT_THAT(rule->ApplyRows(p, i, g, state, {1}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refused(scalar, ids, gradient);
  refused(table, Tensor(), gradient);
  refused(table, Tensor::FromVector<int32_t>({0}, {1}), gradient);
  refused(table, Tensor::FromVector<int64_t>({0}, {1, 1}), gradient);
  refused(table, ids, F64({1}, {1}));
  refused(table, ids, F64({1, 2}, {2, 1}));
}

}  // namespace
}  // namespace hawser::optim
