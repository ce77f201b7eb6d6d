// Tables whose key ranges have options of their own.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

constexpr size_t kWidth = 3;
constexpr uint64_t kNumKeys = 500;

struct Case {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  Retention retention = {};
};

class KeyRangesTest : public testing::TestWithParam<Case> {
 protected:
  static TableSpec Spec() {
    return {.name = "t",
            .width = kWidth,
            .dtype = GetParam().dtype,
            .rule = {"Adagrad", {{"lr", 0.1}}},
            .initializer = Initializer::Uniform(-1, 1),
            .seed = 5,
            .retention = GetParam().retention,
            .schedule = optim::ScheduleSpec::Linear({.total_steps = 20})};
  }

  // Ranges beside each other and with gaps.
  static std::vector<KeyRange> Ranges() {
    return {
        {.first = 100,
         .last = 199,
         .rule = optim::RuleSpec{"Adagrad",
                                 {{"initial_accumulator_value", 0.5},
                                  {"eps", 0.01}}}},
        {.first = 200,
         .last = 299,
         .rule = optim::RuleSpec{"Adagrad", {{"lr", 0.03}}},
         .schedule = optim::ScheduleSpec::Exponential({.gamma = 0.9})},
        {.first = 400,
         .last = 450,
         .schedule = optim::ScheduleSpec(),
         .initializer = Initializer::Constant(7)},
    };
  }

  // The options of a key as those of a table.
  static TableSpec SpecOf(uint64_t key) {
    TableSpec spec = Spec();
    for (const KeyRange& range : Ranges()) {
      if (key < range.first || key > range.last) continue;
      if (range.rule.has_value()) {
        for (const auto& [name, value] : range.rule->options) {
          spec.rule.Set(name, value);
        }
      }
      spec.schedule = range.schedule.value_or(spec.schedule);
      spec.initializer = range.initializer.value_or(spec.initializer);
    }
    // The layout of rows is that of the table with ranges.
    return spec;
  }
};

TEST_P(KeyRangesTest, EachRowIsThatOfATableWithItsOptions) {
  TableSpec spec = Spec();
  spec.key_ranges = Ranges();
  const auto table = *SparseTable::Create(spec);
  // One for each range and one for the other keys.
  std::vector<std::unique_ptr<SparseTable>> alone;
  std::vector<SparseTable*> alone_of(kNumKeys);
  for (uint64_t key = 0; key < kNumKeys; ++key) {
    SparseTable* found = nullptr;
    for (const auto& other : alone) {
      if (other->spec() == *NormalizeTableSpec(SpecOf(key))) {
        found = other.get();
      }
    }
    if (found == nullptr) {
      alone.push_back(*SparseTable::Create(SpecOf(key)));
      found = alone.back().get();
    }
    alone_of[key] = found;
  }
  ASSERT_EQ(alone.size(), 4);
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    // More keys than a group of the pipeline, some of them repeated.
    std::vector<uint64_t> keys(200);
    for (uint64_t& key : keys) key = random() % kNumKeys;
    std::vector<float> gradients(keys.size() * kWidth);
    for (float& gradient : gradients) {
      gradient = static_cast<float>(random() % 1000) / 500 - 1;
    }
    const PushRate rate =
        round % 4 == 0   ? PushRate{}
        : round % 4 == 1 ? PushRate{.step = round / 2}
        : round % 4 == 2 ? PushRate{.learning_rate = 0.05}
                         : PushRate{.learning_rate = 0.05, .step = round / 2};
    ASSERT_THAT(table->Push(keys, gradients, rate), IsOk());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_THAT(alone_of[keys[i]]->Push(
                      {&keys[i], 1}, {&gradients[i * kWidth], kWidth}, rate),
                  IsOk());
    }
  }
  for (uint64_t key = 0; key < kNumKeys; ++key) {
    std::vector<float> row(kWidth);
    std::vector<float> expected(kWidth);
    ASSERT_THAT(table->Pull({&key, 1}, row, MissingRows::kKeep), IsOk());
    ASSERT_THAT(alone_of[key]->Pull({&key, 1}, expected, MissingRows::kKeep),
                IsOk());
    EXPECT_EQ(row, expected) << "key " << key;
  }
}

TEST_P(KeyRangesTest, AnAssignedRowBeginsWithTheStateOfItsRange) {
  TableSpec spec = Spec();
  spec.key_ranges = Ranges();
  const auto table = *SparseTable::Create(spec);
  for (const uint64_t key : {uint64_t{50}, uint64_t{150}}) {
    const auto ranges = *table->SplitOrdered({&key, 1});
    const std::vector<float> weights(kWidth, 2);
    ASSERT_THAT(ranges[0].partition->Assign({&key, 1}, weights.data(),
                                            ExistingRows::kReplace),
                IsOk());
    bool found = false;
    table->ForEachRow([&](uint64_t visited, const std::byte* row) {
      if (visited != key) return;
      found = true;
      EXPECT_EQ(
          table->format().layout().slot(const_cast<std::byte*>(row), 0)[1],
          key == 150 ? 0.5f : 0);
    });
    EXPECT_TRUE(found);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tables, KeyRangesTest,
    testing::Values(Case{"f32"}, Case{"bf16", tensor::DType::kBF16},
                    Case{"retention",
                         tensor::DType::kF32,
                         {.ttl = absl::Hours(1), .max_rows = 10'000}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace hawser::ps
