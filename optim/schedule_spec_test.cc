#include "optim/schedule_spec.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/lr_schedule.h"
#include "optim/rule_spec.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

struct Pair {
  ScheduleSpec spec;
  absl::StatusOr<LrSchedule> expected;
};

// The names and options of a description are those of the functions.
TEST(ScheduleSpecTest, GivesTheRatesOfTheFunctions) {
  const std::vector<Pair> pairs = {
      {ScheduleSpec::Constant({.factor = 0.25, .total_steps = 7}),
       ConstantLr({.factor = 0.25, .total_steps = 7})},
      {ScheduleSpec::Linear(
           {.start_factor = 0.1, .end_factor = 0.9, .total_steps = 11}),
       LinearLr({.start_factor = 0.1, .end_factor = 0.9, .total_steps = 11})},
      {ScheduleSpec::Step({.step_size = 3, .gamma = 0.5}), StepLr(3, 0.5)},
      {ScheduleSpec::Exponential({.gamma = 0.97}), ExponentialLr(0.97)},
      {ScheduleSpec::Polynomial({.total_steps = 13, .power = 2}),
       PolynomialLr({.total_steps = 13, .power = 2})},
      {ScheduleSpec::Cosine({.period = 9, .min_lr = 0.01}),
       CosineAnnealingLr({.period = 9, .min_lr = 0.01})},
      {ScheduleSpec::CosineWarmRestarts(
           {.first_period = 2, .multiplier = 3, .min_lr = 0.01}),
       optim::CosineWarmRestarts(
           {.first_period = 2, .multiplier = 3, .min_lr = 0.01})},
      {ScheduleSpec(), LrSchedule([](double base, int64_t) { return base; })},
  };
  for (const auto& [spec, expected] : pairs) {
    const absl::StatusOr<LrSchedule> made = MakeLrSchedule(spec);
    ASSERT_THAT(made, IsOk()) << spec.ToString();
    for (int64_t step = 0; step < 40; ++step) {
      EXPECT_EQ(*(*made)(0.5, step), *(*expected)(0.5, step))
          << spec.ToString() << " at " << step;
    }
    EXPECT_THAT(NormalizeScheduleSpec(spec), IsOkAndHolds(spec));
  }
}

TEST(ScheduleSpecTest, APhaseCountsItsStepsFromItsFirst) {
  const ScheduleSpec spec =
      ScheduleSpec::Linear({.start_factor = 0, .total_steps = 10})
          .Then(10, ScheduleSpec::Step({.step_size = 5})
                        .Then(20, ScheduleSpec::Constant({.factor = 0})));
  EXPECT_EQ(spec.ToString(),
            "LinearLR(start_factor=0,end_factor=1,total_steps=10), from step "
            "10 StepLR(step_size=5,gamma=0.1), from step 30 "
            "ConstantLR(factor=0,total_steps=5)");
  const LrSchedule schedule = *MakeLrSchedule(spec);
  for (const auto& [step, rate] :
       std::vector<std::pair<int64_t, double>>{{0, 0},
                                               {5, 1},
                                               {10, 2},
                                               {14, 2},
                                               {15, 0.2},
                                               {29, 0.002},
                                               {30, 0},
                                               {35, 2}}) {
    EXPECT_THAT(schedule(2, step), IsOkAndHolds(DoubleNear(rate, 1e-15)))
        << step;
  }
}

TEST(ScheduleSpecTest, TheSameScheduleInOtherWordsIsEqual) {
  const ScheduleSpec other{.phases = {{{"LinearLR", {{"total_steps", 5}}}, 0}}};
  EXPECT_NE(other, ScheduleSpec::Linear({}));
  EXPECT_THAT(NormalizeScheduleSpec(other),
              IsOkAndHolds(ScheduleSpec::Linear({})));
}

TEST(ScheduleSpecTest, RatesStayInRangeToTheLastStep) {
  for (const ScheduleSpec& spec :
       {ScheduleSpec::Exponential({.gamma = 0.5}),
        ScheduleSpec::Step({.step_size = 1, .gamma = 1}),
        ScheduleSpec::Polynomial({.power = 0}),
        ScheduleSpec::CosineWarmRestarts(
            {.first_period = int64_t{1} << 53, .multiplier = 1000}),
        ScheduleSpec::CosineWarmRestarts(
            {.first_period = 1, .multiplier = 1000})}) {
    const LrSchedule schedule = *MakeLrSchedule(spec);
    for (const int64_t step :
         {int64_t{0}, ScheduleSpec::kMaxStep - 1, ScheduleSpec::kMaxStep}) {
      EXPECT_THAT(schedule(0.5, step), IsOkAndHolds(testing::AllOf(
                                           testing::Ge(0), testing::Le(0.5))))
          << spec.ToString() << " at " << step;
    }
  }
}

struct Wrong {
  std::string error;
  ScheduleSpec spec;
};

class WrongScheduleSpecTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongScheduleSpecTest, IsRefusedByName) {
  EXPECT_THAT(MakeLrSchedule(GetParam().spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
  EXPECT_THAT(NormalizeScheduleSpec(GetParam().spec),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

ScheduleSpec One(const char* name, const char* option, double value) {
  return {.phases = {{{name, {{option, value}}}, 0}}};
}

ScheduleSpec From(std::vector<int64_t> first_steps) {
  ScheduleSpec spec;
  for (const int64_t first : first_steps) {
    spec.phases.push_back({{"ConstantLR", {}}, first});
  }
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    ScheduleSpecTest, WrongScheduleSpecTest,
    testing::Values(
        Wrong{"unknown schedule \"LambdaLR\"", One("LambdaLR", "a", 1)},
        Wrong{"StepLR does not have an option \"T_max\"; its options are "
              "step_size, gamma",
              One("StepLR", "T_max", 1)},
        Wrong{"step_size must be a whole number",
              One("StepLR", "step_size", 1.5)},
        Wrong{"step_size must be a whole number",
              One("StepLR", "step_size",
                  std::numeric_limits<double>::quiet_NaN())},
        Wrong{"step_size must be a whole number",
              One("StepLR", "step_size", 0x1p60)},
        Wrong{"step_size must be above 0", One("StepLR", "gamma", 0.1)},
        Wrong{"gamma must be in (0, 1]", One("ExponentialLR", "gamma", 1.01)},
        Wrong{"gamma must be in (0, 1]", One("ExponentialLR", "gamma", 0)},
        Wrong{"start_factor must be in [0, 1]",
              One("LinearLR", "start_factor", 2)},
        Wrong{"factor must be in [0, 1]", One("ConstantLR", "factor", -1)},
        Wrong{"power must be in [0", One("PolynomialLR", "power", -1)},
        Wrong{"min_lr must be in [0", One("CosineAnnealingLR", "min_lr", -1)},
        Wrong{"period must be above 0", One("CosineAnnealingLR", "min_lr", 0)},
        Wrong{"multiplier must be in [1, 1000]",
              One("CosineAnnealingWarmRestarts", "multiplier", 1001)},
        Wrong{"begins at step 1; the first one begins at 0", From({1})},
        Wrong{"phase 1 of a schedule begins at step 0", From({0, 0})},
        Wrong{"phase 2 of a schedule begins at step 4", From({0, 5, 4})},
        Wrong{"at most 16 phases", From({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                         12, 13, 14, 15, 16})}));

}  // namespace
}  // namespace hawser::optim
