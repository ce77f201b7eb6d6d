#include "ps/storage/rows/row_options.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/schedule_spec.h"
#include "ps/storage/consistency.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

using ::testing::Optional;

std::unique_ptr<const RowOptionsByKey> OptionsOf(TableSpec spec) {
  spec.name = "t";
  spec.width = 1;
  if (spec.rule.name == "RowWiseAdagrad") spec.rule = {"SGD", {{"lr", 0.5}}};
  return *RowOptionsByKey::Create(*NormalizeTableSpec(spec));
}

KeyRange Range(uint64_t first, uint64_t last, double lr) {
  return {.first = first,
          .last = last,
          .rule = optim::RuleSpec{"SGD", {{"lr", lr}}}};
}

TEST(RowOptionsByKeyTest, EachKeyHasThoseOfItsRange) {
  const auto options = OptionsOf(
      {.key_ranges = {Range(UINT64_MAX - 1, UINT64_MAX, 4), Range(10, 20, 1),
                      Range(21, 21, 2), Range(30, 40, 3)}});
  for (const auto& [key, lr] :
       std::vector<std::pair<uint64_t, double>>{{0, 0.5},
                                                {9, 0.5},
                                                {10, 1},
                                                {15, 1},
                                                {20, 1},
                                                {21, 2},
                                                {22, 0.5},
                                                {29, 0.5},
                                                {30, 3},
                                                {40, 3},
                                                {41, 0.5},
                                                {uint64_t{1} << 63, 0.5},
                                                {UINT64_MAX - 2, 0.5},
                                                {UINT64_MAX - 1, 4},
                                                {UINT64_MAX, 4}}) {
    EXPECT_EQ(options->Of(key).learning_rate, lr) << key;
  }
}

TEST(RowOptionsByKeyTest, RangesMayHaveAllKeys) {
  const auto options =
      OptionsOf({.key_ranges = {Range(0, 99, 1), Range(100, UINT64_MAX, 2)}});
  EXPECT_EQ(options->Of(0).learning_rate, 1);
  EXPECT_EQ(options->Of(99).learning_rate, 1);
  EXPECT_EQ(options->Of(100).learning_rate, 2);
  EXPECT_EQ(options->Of(UINT64_MAX).learning_rate, 2);
}

// Rows with the same rule are updated by one call.
TEST(RowOptionsByKeyTest, OptionsThatDifferInTheRateAloneShareTheRule) {
  TableSpec spec{.rule = {"Adagrad", {{"lr", 0.1}}}};
  spec.key_ranges = {
      {.first = 1,
       .last = 1,
       .rule = optim::RuleSpec{"Adagrad", {{"lr", 0.2}}}},
      {.first = 2,
       .last = 2,
       .rule = optim::RuleSpec{"Adagrad", {{"eps", 0.5}}}},
      {.first = 3,
       .last = 3,
       .rule = optim::RuleSpec{"Adagrad", {{"eps", 0.5}, {"lr", 3}}}}};
  const auto options = OptionsOf(spec);
  EXPECT_EQ(options->Of(1).rule, options->Of(0).rule);
  EXPECT_NE(options->Of(2).rule, options->Of(0).rule);
  EXPECT_EQ(options->Of(3).rule, options->Of(2).rule);
  // What a range does not set is the table's.
  EXPECT_EQ(options->Of(2).learning_rate, 0.1);
}

TEST(RowOptionsByKeyTest, RowsCountUpdatesOnlyIfSomethingMayNeedThem) {
  const auto schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5});
  EXPECT_FALSE(OptionsOf({})->depends_on_updates());
  EXPECT_TRUE(OptionsOf({.schedule = schedule})->depends_on_updates());
  EXPECT_TRUE(
      OptionsOf({.key_ranges = {{.first = 1, .last = 2, .schedule = schedule}}})
          ->depends_on_updates());
  EXPECT_FALSE(OptionsOf({.consistency = Consistency::Synchronous(),
                          .schedule = schedule})
                   ->depends_on_updates());
  // lr_decay is a part of the rule.
  EXPECT_TRUE(
      OptionsOf(
          {.rule = {"Adagrad", {{"lr", 0.1}}},
           .key_ranges = {{.first = 1,
                           .last = 2,
                           .rule = optim::RuleSpec{"Adagrad",
                                                   {{"lr_decay", 0.5}}}}}})
          ->depends_on_updates());
}

TEST(RowRatesTest, ARateThatIsTheSameForAllRowsIsComputedOnce) {
  const auto plain = OptionsOf({});
  EXPECT_THAT(RowRates(*plain, {}).uniform(), Optional(0.5));
  EXPECT_THAT(RowRates(*plain, {.learning_rate = 2, .step = 7}).uniform(),
              Optional(2));
  const auto scheduled =
      OptionsOf({.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5})});
  EXPECT_THAT(RowRates(*scheduled, {.step = 2}).uniform(), Optional(0.125));
  EXPECT_THAT(RowRates(*scheduled, {.learning_rate = 4, .step = 1}).uniform(),
              Optional(2));
  EXPECT_EQ(RowRates(*scheduled, {}).uniform(), std::nullopt);
}

TEST(RowRatesTest, WithoutAStepEachRowHasItsOwn) {
  const auto options =
      OptionsOf({.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5})});
  RowRates rates(*options, {});
  EXPECT_EQ(rates.Of(options->of_table(), 0), 0.5);
  EXPECT_EQ(rates.Of(options->of_table(), 3), 0.0625);
  EXPECT_EQ(rates.Of(options->of_table(), 1), 0.25);
}

TEST(RowRatesTest, APushReplacesTheBasesOfAllRanges) {
  KeyRange constant = Range(1, 1, 3);
  constant.schedule = optim::ScheduleSpec();
  const auto options =
      OptionsOf({.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5}),
                 .key_ranges = {constant, Range(2, 2, 5)}});
  RowRates rates(*options, {.step = 1});
  EXPECT_EQ(rates.Of(options->Of(0), 9), 0.25);
  EXPECT_EQ(rates.Of(options->Of(1), 9), 3);
  EXPECT_EQ(rates.Of(options->Of(2), 9), 2.5);
  RowRates replaced(*options, {.learning_rate = 8, .step = 1});
  EXPECT_EQ(replaced.Of(options->Of(0), 9), 4);
  EXPECT_EQ(replaced.Of(options->Of(1), 9), 8);
  EXPECT_EQ(replaced.Of(options->Of(2), 9), 4);
}

// Clocks may be larger than the steps of schedules.
TEST(RowRatesTest, LargeStepsAreLikeTheLast) {
  const auto options =
      OptionsOf({.schedule = optim::ScheduleSpec::CosineWarmRestarts(
                     {.first_period = 1, .multiplier = 1000, .min_lr = 0.25})});
  EXPECT_EQ(
      RowRates(*options, {.step = int64_t{1} << 60}).uniform(),
      RowRates(*options, {.step = optim::ScheduleSpec::kMaxStep}).uniform());
}

}  // namespace
}  // namespace hawser::ps
