#include "optim/option_scheduler.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

std::unique_ptr<Optimizer> TwoGroups() {
  return *Optimizer::Create(
      {{.parameters = {Tensor::Zeros({1})}},
       {.parameters = {Tensor::Zeros({1})}, .options = {{"lr", 4}}}},
      Sgd({.lr = 1, .momentum = 0.5}));
}

TEST(OptionSchedulerTest, EachGroupHasItsBase) {
  const auto optimizer = TwoGroups();
  const auto scheduler =
      OptionScheduler::Create(optimizer.get(), *StepLr(2, 0.5));
  ASSERT_THAT(scheduler, IsOk());
  std::vector<double> first = {optimizer->learning_rate(0)};
  std::vector<double> second = {optimizer->learning_rate(1)};
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT((*scheduler)->Step(), IsOk());
    first.push_back(optimizer->learning_rate(0));
    second.push_back(optimizer->learning_rate(1));
  }
  EXPECT_EQ(first, (std::vector<double>{1, 1, 0.5, 0.5, 0.25}));
  EXPECT_EQ(second, (std::vector<double>{4, 4, 2, 2, 1}));
  EXPECT_EQ((*scheduler)->step(), 4);
}

TEST(OptionSchedulerTest, GoToEqualsRepeatedSteps) {
  const auto optimizer = TwoGroups();
  const auto scheduler =
      OptionScheduler::Create(optimizer.get(), *ExponentialLr(0.5));
  ASSERT_THAT(scheduler, IsOk());
  ASSERT_THAT((*scheduler)->GoTo(3), IsOk());
  EXPECT_EQ(optimizer->learning_rate(0), 0.125);
  ASSERT_THAT((*scheduler)->Step(), IsOk());
  EXPECT_EQ(optimizer->learning_rate(1), 0.25);
}

TEST(OptionSchedulerTest, AnyOptionCanBeScheduled) {
  const auto optimizer = TwoGroups();
  const auto scheduler = OptionScheduler::Create(
      optimizer.get(), *OneCycleMomentum({.max_lr = 1, .total_steps = 10}),
      "momentum");
  ASSERT_THAT(scheduler, IsOk());
  EXPECT_EQ(optimizer->rule(1).Find("momentum"), 0.95);
}

TEST(OptionSchedulerTest, UnknownOptionIsRejected) {
  const auto optimizer = TwoGroups();
  EXPECT_THAT(
      OptionScheduler::Create(optimizer.get(), *ExponentialLr(1), "beta1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beta1")));
}

TEST(OptionSchedulerTest, FailedStepChangesNothing) {
  const auto optimizer = TwoGroups();
  const LrSchedule goes_negative = [](double base, int64_t t) {
    return base - 2 * static_cast<double>(t);
  };
  const auto scheduler =
      OptionScheduler::Create(optimizer.get(), goes_negative);
  ASSERT_THAT(scheduler, IsOk());
  EXPECT_THAT((*scheduler)->Step(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lr")));
  EXPECT_EQ((*scheduler)->step(), 0);
  EXPECT_EQ(optimizer->learning_rate(0), 1);
  EXPECT_EQ(optimizer->learning_rate(1), 4);
}

}  // namespace
}  // namespace hawser::optim
