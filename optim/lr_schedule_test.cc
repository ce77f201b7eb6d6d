#include "optim/lr_schedule.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::nlohmann::json;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Compares schedules, for a base of 0.5, with results of PyTorch 1.13.1.
class LrScheduleGoldenTest : public testing::Test {
 protected:
  LrScheduleGoldenTest() {
    std::ifstream file("optim/testdata/lr_golden.json");
    golden_ = json::parse(file)["schedules"];
  }

  void ExpectGolden(const std::string& name,
                    const absl::StatusOr<LrSchedule>& schedule,
                    const std::string& what = "lr") {
    SCOPED_TRACE(name);
    ASSERT_THAT(schedule, IsOk());
    const std::vector<double> expected = golden_[name][what];
    ASSERT_EQ(expected.size(), 40);
    for (size_t t = 0; t < expected.size(); ++t) {
      const absl::StatusOr<double> actual = (*schedule)(0.5, t);
      ASSERT_THAT(actual, IsOk());
      EXPECT_NEAR(*actual, expected[t], 1e-12) << "step " << t;
    }
  }

  json golden_;
};

TEST_F(LrScheduleGoldenTest, SchedulesEqualThoseOfPyTorch) {
  ExpectGolden("step", StepLr(7, 0.3));
  ExpectGolden("multi_step", MultiStepLr({3, 8, 20}, 0.2));
  ExpectGolden("constant", ConstantLr({.factor = 0.25, .total_steps = 6}));
  ExpectGolden(
      "linear",
      LinearLr({.start_factor = 0.1, .end_factor = 0.9, .total_steps = 10}));
  ExpectGolden("exponential", ExponentialLr(0.93));
  ExpectGolden("polynomial", PolynomialLr({.total_steps = 20, .power = 2}));
  ExpectGolden("cosine", CosineAnnealingLr({.period = 10, .min_lr = 0.05}));
  ExpectGolden(
      "warm_restarts",
      CosineWarmRestarts({.first_period = 5, .multiplier = 2, .min_lr = 0.01}));
  ExpectGolden("equal_restarts", CosineWarmRestarts({.first_period = 6}));
  ExpectGolden("lambda", LrSchedule([](double base, int64_t t) {
                 return base / static_cast<double>(1 + t);
               }));
}

TEST_F(LrScheduleGoldenTest, OneCycleEqualsThatOfPyTorch) {
  const OneCycleOptions plain = {.max_lr = 2, .total_steps = 41};
  ExpectGolden("one_cycle", OneCycleLr(plain));
  ExpectGolden("one_cycle", OneCycleMomentum(plain), "momentum");
  const OneCycleOptions linear = {.max_lr = 2,
                                  .total_steps = 41,
                                  .rising_share = 0.4,
                                  .linear = true,
                                  .div_factor = 10,
                                  .final_div_factor = 100,
                                  .base_momentum = 0.8,
                                  .max_momentum = 0.9};
  ExpectGolden("one_cycle_linear", OneCycleLr(linear));
  ExpectGolden("one_cycle_linear", OneCycleMomentum(linear), "momentum");
  const OneCycleOptions three = {
      .max_lr = 2, .total_steps = 41, .three_phase = true};
  ExpectGolden("one_cycle_three_phase", OneCycleLr(three));
  ExpectGolden("one_cycle_three_phase", OneCycleMomentum(three), "momentum");
}

TEST_F(LrScheduleGoldenTest, CombinationsEqualThoseOfPyTorch) {
  ExpectGolden("sequential", SequentialLr({*LinearLr({.start_factor = 0.1}),
                                           *CosineAnnealingLr({.period = 20}),
                                           *ExponentialLr(0.9)},
                                          {5, 22}));
  ExpectGolden("chained",
               ChainedLr({*ConstantLr({.factor = 0.5, .total_steps = 4}),
                          *ExponentialLr(0.9)}));
}

TEST(LrScheduleTest, InvalidOptionsAreRejected) {
  const absl::StatusOr<LrSchedule> refused[] = {
      StepLr(0),
      StepLr(1, kNan),
      MultiStepLr({3, 3}),
      MultiStepLr({3}, kNan),
      ConstantLr({.factor = 1.1}),
      LinearLr({.start_factor = -0.1}),
      LinearLr({.end_factor = 2}),
      LinearLr({.total_steps = 0}),
      ExponentialLr(kNan),
      PolynomialLr({.total_steps = 0}),
      PolynomialLr({.power = kNan}),
      CosineAnnealingLr({}),
      CosineAnnealingLr({.period = 1, .min_lr = kNan}),
      CosineWarmRestarts({}),
      CosineWarmRestarts({.first_period = 1, .multiplier = 0}),
      OneCycleLr({.max_lr = 1}),
      OneCycleLr({.max_lr = kNan, .total_steps = 10}),
      OneCycleLr({.max_lr = 1, .total_steps = 10, .rising_share = 2}),
      OneCycleLr({.max_lr = 1, .total_steps = 10, .div_factor = 0}),
      OneCycleMomentum({.max_lr = 1, .total_steps = 9, .max_momentum = 2}),
      SequentialLr({*ExponentialLr(1)}, {3}),
      SequentialLr({*ExponentialLr(1), *ExponentialLr(1), *ExponentialLr(1)},
                   {3, 2}),
  };
  for (const auto& schedule : refused) {
    EXPECT_THAT(schedule, StatusIs(absl::StatusCode::kInvalidArgument))
        << &schedule - refused;
  }
}

TEST(LrScheduleTest, OneCycleEndsWithAnError) {
  const auto schedule = OneCycleLr({.max_lr = 1, .total_steps = 10});
  ASSERT_THAT(schedule, IsOk());
  EXPECT_THAT((*schedule)(1, 9), IsOkAndHolds(testing::DoubleEq(1 / 25e4)));
  EXPECT_THAT((*schedule)(1, 11),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("11 of 10")));
  // A combination returns the error too.
  EXPECT_THAT(ChainedLr({*schedule})(1, 11),
              StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace hawser::optim
