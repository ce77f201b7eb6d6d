#include "optim/plateau_scheduler.h"

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::nlohmann::json;

std::unique_ptr<Optimizer> OneGroup() {
  return *Optimizer::Create({Tensor::Zeros({1})}, Sgd({.lr = 0.5}));
}

struct GoldenCase {
  const char* name;
  PlateauOptions options;
};

class PlateauGoldenTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(PlateauGoldenTest, LearningRatesEqualThoseOfPyTorch) {
  std::ifstream file("optim/testdata/lr_golden.json");
  const json golden = json::parse(file)["plateau"][GetParam().name];
  const auto optimizer = OneGroup();
  const auto scheduler =
      PlateauScheduler::Create(optimizer.get(), GetParam().options);
  ASSERT_THAT(scheduler, IsOk());
  const std::vector<double> metrics = golden["metrics"];
  const std::vector<double> expected = golden["lr"];
  for (size_t i = 0; i < metrics.size(); ++i) {
    ASSERT_THAT((*scheduler)->Step(metrics[i]), IsOk());
    ASSERT_NEAR(optimizer->learning_rate(), expected[i], 1e-15) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    PlateauSchedulerTest, PlateauGoldenTest,
    testing::Values(GoldenCase{"plateau", {.factor = 0.5, .patience = 3}},
                    GoldenCase{"plateau_max",
                               {.maximize = true,
                                .factor = 0.2,
                                .patience = 2,
                                .threshold = 0.1,
                                .cooldown = 4,
                                .min_lr = 0.01}},
                    GoldenCase{"plateau_absolute",
                               {.factor = 0.1,
                                .patience = 1,
                                .threshold = 0.05,
                                .absolute_threshold = true,
                                .eps = 1e-3}},
                    GoldenCase{"plateau_max_absolute",
                               {.maximize = true,
                                .factor = 0.5,
                                .patience = 0,
                                .threshold = 0.01,
                                .absolute_threshold = true}}),
    [](const auto& param) { return param.param.name; });

TEST(PlateauSchedulerTest, NanIsNotAnImprovement) {
  const auto optimizer = OneGroup();
  const auto scheduler =
      PlateauScheduler::Create(optimizer.get(), {.factor = 0.5, .patience = 0});
  ASSERT_THAT((*scheduler)->Step(1), IsOk());
  ASSERT_THAT((*scheduler)->Step(std::nan("")), IsOk());
  EXPECT_EQ(optimizer->learning_rate(), 0.25);
  EXPECT_EQ((*scheduler)->state().best, 1);
}

TEST(PlateauSchedulerTest, AnotherSchedulerResumesFromTheState) {
  const auto optimizer = OneGroup();
  const PlateauOptions options = {.factor = 0.5, .patience = 1};
  const auto first = PlateauScheduler::Create(optimizer.get(), options);
  ASSERT_THAT((*first)->Step(1), IsOk());
  ASSERT_THAT((*first)->Step(2), IsOk());
  const auto second = PlateauScheduler::Create(optimizer.get(), options);
  (*second)->set_state((*first)->state());
  ASSERT_THAT((*second)->Step(2), IsOk());
  EXPECT_EQ(optimizer->learning_rate(), 0.25);
}

TEST(PlateauSchedulerTest, FactorOfOneIsRejected) {
  const auto optimizer = OneGroup();
  EXPECT_THAT(PlateauScheduler::Create(optimizer.get(), {.factor = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::optim
