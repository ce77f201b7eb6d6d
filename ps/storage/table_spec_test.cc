#include "ps/storage/table_spec.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(TableSpecTest, DefaultsNeedOnlyNameAndWidth) {
  EXPECT_THAT(NormalizeTableSpec({.name = "users", .width = 16}), IsOk());
}

TEST(TableSpecTest, TheSameRuleInOtherWordsIsTheSameTable) {
  const TableSpec a{.name = "t",
                    .width = 1,
                    .rule = {"Adagrad", {{"lr", 0.1}, {"eps", 1e-10}}}};
  const TableSpec b{
      .name = "t", .width = 1, .rule = {"Adagrad", {{"lr", 0.1}}}};
  EXPECT_NE(a, b);
  EXPECT_EQ(*NormalizeTableSpec(a), *NormalizeTableSpec(b));
}

TEST(TableSpecTest, RangesInAnotherOrderAreTheSameTable) {
  TableSpec a{.name = "t",
              .width = 1,
              .rule = {"Adagrad", {{"lr", 0.1}}},
              .schedule = {.phases = {{{"LinearLR", {}}, 0}}}};
  a.key_ranges = {
      {.first = 5, .last = 9, .rule = optim::RuleSpec{"Adagrad", {}}},
      {.first = 1,
       .last = 4,
       .rule = optim::RuleSpec{"Adagrad", {{"lr", 0.1}, {"eps", 0.5}}}}};
  TableSpec b = a;
  b.schedule = optim::ScheduleSpec::Linear({});
  std::swap(b.key_ranges[0], b.key_ranges[1]);
  b.key_ranges[0].rule = optim::RuleSpec{"Adagrad", {{"eps", 0.5}}};
  EXPECT_EQ(*NormalizeTableSpec(a), *NormalizeTableSpec(b));
  b.key_ranges[1].first = 6;
  EXPECT_NE(*NormalizeTableSpec(a), *NormalizeTableSpec(b));
}

// A rule with as many numbers per weight as its option says.
class SlotsRule final : public optim::UpdateRule {
 public:
  SlotsRule(const optim::RuleSpec& spec, std::vector<optim::Slot> slots)
      : UpdateRule(spec, std::move(slots), optim::GradientKind::kDenseAndRows) {
  }
  void Update(std::span<const optim::UpdateSpan>) const override {}
};

TEST(TableSpecTest, RangesHaveTheStateOfTheTable) {
  ASSERT_THAT(optim::RegisterUpdateRule(
                  "Slots",
                  [](const optim::RuleSpec& spec)
                      -> absl::StatusOr<std::unique_ptr<optim::UpdateRule>> {
                    std::vector<optim::Slot> slots(
                        static_cast<size_t>(*spec.Find("slots")));
                    for (size_t i = 0; i < slots.size(); ++i) {
                      slots[i].name = absl::StrCat("slot", i);
                    }
                    return std::make_unique<SlotsRule>(spec, std::move(slots));
                  }),
              IsOk());
  TableSpec spec{.name = "t", .width = 1, .rule = {"Slots", {{"slots", 1}}}};
  spec.key_ranges = {{.first = 1,
                      .last = 2,
                      .rule = optim::RuleSpec{"Slots", {{"slots", 2}}}}};
  EXPECT_THAT(NormalizeTableSpec(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("key range [1, 2]: rule: Slots(slots=2) does "
                                 "not keep the same numbers for a row as "
                                 "Slots(slots=1)")));
  spec.key_ranges[0].rule->Set("slots", 1);
  EXPECT_THAT(NormalizeTableSpec(spec), IsOk());
}

// Clients need not have the rules of servers.
TEST(TableSpecTest, TheOptionsOfARuleThatIsNotRegisteredAreKept) {
  TableSpec a{.name = "t", .width = 1, .rule = {"Lion", {{"b", 1}, {"a", 2}}}};
  a.key_ranges = {{.first = 1,
                   .last = 4,
                   .rule = optim::RuleSpec{"Lion", {{"c", 3}, {"b", 4}}}}};
  const auto spec = NormalizeTableSpec(a);
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->rule.ToString(), "Lion(a=2,b=1)");
  EXPECT_EQ(spec->key_ranges[0].rule->ToString(), "Lion(a=2,b=4,c=3)");
}

TEST(TableSpecTest, RetentionIsNormalized) {
  const auto spec =
      NormalizeTableSpec({.name = "t",
                          .width = 1,
                          .retention = {.admission_window = 1000,
                                        .ttl = absl::Milliseconds(1500)}});
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->retention.ttl, absl::Seconds(2));
  // Nothing depends on the window.
  EXPECT_EQ(spec->retention.admission_window, Retention().admission_window);
  EXPECT_FALSE(Retention().active());
}

struct Wrong {
  std::string error;
  std::function<void(TableSpec&)> change;
};

class WrongTableSpecTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongTableSpecTest, IsRefusedByName) {
  TableSpec spec{.name = "users", .width = 16};
  GetParam().change(spec);
  EXPECT_THAT(NormalizeTableSpec(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
}

INSTANTIATE_TEST_SUITE_P(
    TableSpecTest, WrongTableSpecTest,
    testing::Values(
        Wrong{"needs a name", [](TableSpec& s) { s.name = ""; }},
        Wrong{"needs a name", [](TableSpec& s) { s.name = "a b"; }},
        Wrong{"needs a name", [](TableSpec& s) { s.name.assign(201, 'a'); }},
        Wrong{"width must be", [](TableSpec& s) { s.width = 0; }},
        Wrong{"width must be", [](TableSpec& s) { s.width = 65537; }},
        Wrong{"stored as f32",
              [](TableSpec& s) { s.dtype = tensor::DType::kF64; }},
        Wrong{"number of shards", [](TableSpec& s) { s.num_shards = 0; }},
        Wrong{"number of shards", [](TableSpec& s) { s.num_shards = 65537; }},
        Wrong{"not finite",
              [](TableSpec& s) {
                s.initializer = Initializer::Constant(
                    std::numeric_limits<double>::quiet_NaN());
              }},
        Wrong{"from 2 to 1",
              [](TableSpec& s) { s.initializer = Initializer::Uniform(2, 1); }},
        Wrong{"standard deviation",
              [](TableSpec& s) { s.initializer = Initializer::Normal(0, -1); }},
        Wrong{"1 to 15 pushes, not 0",
              [](TableSpec& s) { s.retention.admission_pushes = 0; }},
        Wrong{"1 to 15 pushes, not 16",
              [](TableSpec& s) { s.retention.admission_pushes = 16; }},
        Wrong{"window of admission",
              [](TableSpec& s) { s.retention.admission_window = 15; }},
        Wrong{"window of admission",
              [](TableSpec& s) {
                s.retention.admission_window = (int64_t{1} << 28) + 1;
              }},
        Wrong{"TTL",
              [](TableSpec& s) { s.retention.ttl = absl::ZeroDuration(); }},
        Wrong{
            "TTL",
            [](TableSpec& s) { s.retention.ttl = -absl::InfiniteDuration(); }},
        Wrong{"TTL",
              [](TableSpec& s) {
                s.retention.ttl = absl::Hours(24 * 3650) + absl::Seconds(1);
              }},
        Wrong{"rows_in_memory is for",
              [](TableSpec& s) { s.storage.rows_in_memory = 1; }},
        Wrong{"rows in memory must be",
              [](TableSpec& s) { s.storage = TableStorage::RocksDb(0); }},
        Wrong{"are not those of a dense table",
              [](TableSpec& s) {
                s.rule = {"SGD", {{"lr", 0.1}}};
                s.storage = TableStorage::RocksDb(10);
                s.tensors = {{"a", {4}}};
              }},
        Wrong{"of a dense table cannot be removed",
              [](TableSpec& s) {
                s.rule = {"SGD", {{"lr", 0.1}}};
                s.tensors = {{"a", {4}}};
                s.retention.max_rows = 10;
              }},
        Wrong{"number of rows",
              [](TableSpec& s) { s.retention.max_rows = -1; }},
        Wrong{"option beta of Lion is not a number",
              [](TableSpec& s) {
                s.rule = {"Lion",
                          {{"beta", std::numeric_limits<double>::quiet_NaN()}}};
              }},
        Wrong{"schedule: unknown schedule \"Newton\"",
              [](TableSpec& s) {
                s.schedule.phases = {{{"Newton", {}}, 0}};
              }},
        Wrong{"schedule: ExponentialLR: gamma must be in (0, 1], not 2",
              [](TableSpec& s) {
                s.schedule = optim::ScheduleSpec::Exponential({.gamma = 2});
              }},
        Wrong{"key range [5, 4]: its first key is above its last",
              [](TableSpec& s) { s.key_ranges = {{.first = 5, .last = 4}}; }},
        Wrong{
            "key range [1, 5] and key range [5, 9] overlap",
            [](TableSpec& s) {
              s.key_ranges = {{.first = 5, .last = 9}, {.first = 1, .last = 5}};
            }},
        Wrong{"at most 512 key ranges, not 513",
              [](TableSpec& s) {
                for (uint64_t i = 0; i < 513; ++i) {
                  s.key_ranges.push_back({.first = i, .last = i});
                }
              }},
        Wrong{"key range [1, 2]: rule: it must be RowWiseAdagrad, the rule of "
              "the table, with other options, not \"SGD\"",
              [](TableSpec& s) {
                s.key_ranges = {{.first = 1,
                                 .last = 2,
                                 .rule = optim::RuleSpec{"SGD", {{"lr", 1}}}}};
              }},
        Wrong{"key range [1, 2]: rule: RowWiseAdagrad does not have an option "
              "\"momentum\"",
              [](TableSpec& s) {
                s.key_ranges = {{.first = 1,
                                 .last = 2,
                                 .rule = optim::RuleSpec{"RowWiseAdagrad",
                                                         {{"momentum", 1}}}}};
              }},
        Wrong{"key range [1, 2]: rule: lr is given twice",
              [](TableSpec& s) {
                s.key_ranges = {
                    {.first = 1,
                     .last = 2,
                     .rule = optim::RuleSpec{"RowWiseAdagrad",
                                             {{"lr", 1}, {"lr", 2}}}}};
              }},
        Wrong{"key range [1, 2]: rule: RowWiseAdagrad: lr must be in [0, inf)",
              [](TableSpec& s) {
                s.key_ranges = {
                    {.first = 1,
                     .last = 2,
                     .rule = optim::RuleSpec{"RowWiseAdagrad", {{"lr", -1}}}}};
              }},
        Wrong{"key range [1, 2]: rule: SGD(lr=1,momentum=0,dampening=0,"
              "weight_decay=0.5,nesterov=0,maximize=0) cannot update rows",
              [](TableSpec& s) {
                s.rule = {"SGD", {{"lr", 1}}};
                s.key_ranges = {
                    {.first = 1,
                     .last = 2,
                     .rule = optim::RuleSpec{"SGD", {{"weight_decay", 0.5}}}}};
              }},
        Wrong{"key range [1, 2]: schedule: StepLr: step_size must be above 0",
              [](TableSpec& s) {
                s.key_ranges = {{.first = 1,
                                 .last = 2,
                                 .schedule = optim::ScheduleSpec::Step({})}};
              }},
        Wrong{"key range [1, 2]: initializer: initial values from 2 to 1",
              [](TableSpec& s) {
                s.key_ranges = {{.first = 1,
                                 .last = 2,
                                 .initializer = Initializer::Uniform(2, 1)}};
              }},
        Wrong{"a dense table has no key ranges",
              [](TableSpec& s) {
                s.rule = {"SGD", {{"lr", 1}}};
                s.tensors = {{"w", {2, 3}}};
                s.key_ranges = {{.first = 1, .last = 2}};
              }},
        Wrong{"cannot update rows",
              [](TableSpec& s) {
                s.rule = {"Adam", {{"lr", 0.1}}};
              }},
        Wrong{"LAMB(lr=0.1) cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"LAMB", {{"lr", 0.1}}};
              }},
        Wrong{"RowWiseAdagrad() cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"RowWiseAdagrad", {}};
              }},
        Wrong{"SparseAdam() cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"SparseAdam", {}};
              }},
        Wrong{"different names",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}, {"w", {1}}};
              }},
        Wrong{"more than", [](TableSpec& s) {
                s.tensors = {{"w", {int64_t{1} << 39}},
                             {"v", {(int64_t{1} << 39) + 1}}};
              }}));

TEST(TableSpecTest, TensorsMayHaveARuleForWholeTensors) {
  EXPECT_THAT(NormalizeTableSpec({.name = "model",
                                  .width = 16,
                                  .rule = {"Adam", {{"lr", 0.1}}},
                                  .tensors = {{"w", {2, 3}}, {"b", {}}}}),
              IsOk());
}

}  // namespace
}  // namespace hawser::ps
