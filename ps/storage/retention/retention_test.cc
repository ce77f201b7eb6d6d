// Tables whose rows are admitted, expire and are evicted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RetentionTest : public testing::Test {
 protected:
  static TableSpec Spec(const Retention& retention) {
    return {.name = "t",
            .width = 1,
            .rule = {"SGD", {{"lr", 1}}},
            .initializer = Initializer::Constant(100),
            .retention = retention};
  }

  std::unique_ptr<SparseTable> Table(const Retention& retention,
                                     int partitions = 1) {
    return *SparseTable::Create(
        Spec(retention), {.num_partitions = partitions, .clock = &clock_});
  }

  // Adds 1 to the rows.
  static void Push(SparseTable& table, const std::vector<uint64_t>& keys) {
    const std::vector<float> gradients(keys.size(), -1);
    ASSERT_THAT(table.Push(keys, gradients, {1}), IsOk());
  }

  static float Row(SparseTable& table, uint64_t key) {
    float row = 0;
    EXPECT_THAT(table.Pull({&key, 1}, {&row, 1}), IsOk());
    return row;
  }

  static std::vector<uint64_t> Keys(const SparseTable& table) {
    std::vector<uint64_t> keys;
    table.ForEachRow(
        [&](uint64_t key, const std::byte*) { keys.push_back(key); });
    return keys;
  }

  async::SimulatedClock clock_;
};

TEST_F(RetentionTest, AKeyGetsItsRowWithThePushOfTheWantedNumber) {
  const auto table = Table({.admission_pushes = 3});
  for (int i = 0; i < 2; ++i) {
    Push(*table, {1});
    // Pulls neither count nor create.
    EXPECT_EQ(Row(*table, 1), 100);
    EXPECT_EQ(table->num_rows(), 0);
  }
  Push(*table, {1, 2});
  EXPECT_EQ(Row(*table, 1), 101);
  EXPECT_EQ(Row(*table, 2), 100);
  Push(*table, {1});
  EXPECT_EQ(Row(*table, 1), 102);
  EXPECT_EQ(table->retention_counts(),
            (RetentionCounts{.updates_not_admitted = 3}));
}

TEST_F(RetentionTest, ARepeatedKeyOfAPushCountsEachTime) {
  const auto table = Table({.admission_pushes = 2});
  Push(*table, {1, 2, 1, 1});
  EXPECT_EQ(Row(*table, 1), 102);
  EXPECT_EQ(Row(*table, 2), 100);
  EXPECT_EQ(table->num_rows(), 1);
}

TEST_F(RetentionTest, ARowExpiresAfterItsLastPush) {
  const auto table = Table({.ttl = absl::Seconds(10)});
  Push(*table, {1, 2});
  clock_.AdvanceBy(absl::Seconds(6));
  Push(*table, {1});
  clock_.AdvanceBy(absl::Seconds(4));
  EXPECT_EQ(Row(*table, 2), 101);
  clock_.AdvanceBy(absl::Seconds(1));
  // Pulls do not prolong it.
  EXPECT_EQ(Row(*table, 1), 102);
  EXPECT_EQ(Row(*table, 2), 100);
  EXPECT_THAT(Keys(*table), UnorderedElementsAre(1));
  // A push begins anew.
  Push(*table, {2});
  EXPECT_EQ(Row(*table, 2), 101);
  EXPECT_EQ(table->retention_counts(), (RetentionCounts{.rows_expired = 1}));
}

TEST_F(RetentionTest, PushesOfOtherKeysRemoveRowsThatHaveExpired) {
  const auto table = Table({.ttl = absl::Seconds(10)});
  for (uint64_t key = 0; key < 1000; ++key) Push(*table, {key});
  const size_t bytes = table->bytes();
  clock_.AdvanceBy(absl::Seconds(11));
  int64_t least = table->num_rows();
  for (uint64_t key = 1000; key < 2000; ++key) {
    Push(*table, {key});
    // A few at a time.
    EXPECT_GE(table->num_rows(), least - 10);
    least = table->num_rows();
  }
  EXPECT_EQ(table->num_rows(), 1000);
  EXPECT_EQ(table->retention_counts().rows_expired, 1000);
  // In the slots of those that are gone.
  EXPECT_LE(table->bytes(), 2 * bytes);
}

TEST_F(RetentionTest, ANewRowReplacesOneThatWasPushedToOnce) {
  const auto table = Table({.max_rows = 100});
  std::vector<uint64_t> hot;
  for (uint64_t key = 0; key < 50; ++key) hot.push_back(key);
  uint64_t cold = 1000;
  for (int round = 0; round < 100; ++round) {
    Push(*table, hot);
    for (int i = 0; i < 10; ++i) Push(*table, {cold++});
    EXPECT_LE(table->num_rows(), 100);
  }
  for (const uint64_t key : hot) EXPECT_EQ(Row(*table, key), 200) << key;
  EXPECT_EQ(table->num_rows(), 100);
  EXPECT_EQ(table->retention_counts(), (RetentionCounts{.rows_evicted = 950}));
}

TEST_F(RetentionTest, IfAllRowsAreHotTheOldestOfSomeGoes) {
  const auto table = Table({.max_rows = 64});
  for (uint64_t key = 0; key < 64; ++key) {
    for (int i = 0; i < 3; ++i) Push(*table, {key});
    clock_.AdvanceBy(absl::Seconds(1));
  }
  Push(*table, {1000});
  EXPECT_EQ(Row(*table, 0), 100);
  for (uint64_t key = 1; key < 64; ++key) EXPECT_EQ(Row(*table, key), 103);
}

TEST_F(RetentionTest, RowsOfTheSamePushAreNotEvicted) {
  const auto table = Table({.max_rows = 4});
  Push(*table, {1, 2});
  Push(*table, {3, 4, 5, 1, 6, 7});
  EXPECT_EQ(Row(*table, 1), 102);
  EXPECT_EQ(Row(*table, 2), 100);
  EXPECT_THAT(Keys(*table), UnorderedElementsAre(1, 3, 4, 5));
  EXPECT_EQ(table->retention_counts(),
            (RetentionCounts{.rows_evicted = 1, .updates_without_room = 2}));
}

// The client of a push has seen a row, which is gone, and whose memory belongs
// to another key, when the gradient arrives.
TEST_F(RetentionTest, APushToAnEvictedRowCreatesItAnewAndTouchesNoOtherRow) {
  const auto table = Table({.max_rows = 1});
  Push(*table, {1});
  EXPECT_EQ(Row(*table, 1), 101);
  Push(*table, {2});
  EXPECT_EQ(Row(*table, 2), 101);
  Push(*table, {1});
  EXPECT_EQ(Row(*table, 1), 101);
  EXPECT_EQ(Row(*table, 2), 100);
  EXPECT_EQ(table->num_rows(), 1);
  EXPECT_EQ(table->retention_counts(), (RetentionCounts{.rows_evicted = 2}));
}

TEST_F(RetentionTest, AssignmentsAreAdmittedWhereThereIsRoom) {
  const auto table = Table({.admission_pushes = 3, .max_rows = 3});
  TablePartition& partition = table->partition(0);
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> first = {5, 6};
  ASSERT_THAT(
      partition.Assign({keys.data(), 2}, first.data(), ExistingRows::kReplace),
      IsOk());
  EXPECT_EQ(Row(*table, 1), 5);
  EXPECT_EQ(Row(*table, 2), 6);
  const std::vector<uint64_t> more = {2, 3, 4, 5};
  const std::vector<float> second = {7, 8, 9, 10};
  ASSERT_THAT(
      partition.Assign({more.data(), 4}, second.data(), ExistingRows::kKeep),
      IsOk());
  EXPECT_EQ(Row(*table, 2), 6);
  EXPECT_EQ(Row(*table, 3), 8);
  EXPECT_EQ(Row(*table, 4), 9);
  EXPECT_EQ(Row(*table, 1), 100);
  EXPECT_EQ(table->retention_counts(),
            (RetentionCounts{.rows_evicted = 1, .updates_without_room = 1}));
}

TEST_F(RetentionTest, PartitionsShareTheLimit) {
  const auto table = Table({.max_rows = 1000}, 7);
  std::vector<uint64_t> keys(100);
  for (uint64_t begin = 0; begin < 20'000; begin += keys.size()) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = begin + i;
    Push(*table, keys);
    ASSERT_LE(table->num_rows(), 1000);
  }
  EXPECT_GE(table->num_rows(), 990);
  // Half of the shards have half of the rows.
  const auto half = *SparseTable::Create(
      Spec({.max_rows = 1000}),
      {.num_partitions = 4, .shards = ShardRange{512, 512}, .clock = &clock_});
  for (uint64_t key = 0; key < 20'000; ++key) {
    const float gradient = -1;
    (void)half->Push({&key, 1}, {&gradient, 1}, {1});
  }
  EXPECT_EQ(half->num_rows(), 500);
}

TEST_F(RetentionTest, WithoutEvictionAPushBeyondTheServersLimitIsRefused) {
  const auto table = *SparseTable::Create(
      Spec({.admission_pushes = 2}),
      {.num_partitions = 1, .max_rows = 2, .clock = &clock_});
  for (int i = 0; i < 2; ++i) Push(*table, {1, 2});
  // Not admitted: needs no room.
  Push(*table, {3});
  const uint64_t key = 3;
  const float gradient = -1;
  EXPECT_THAT(table->Push({&key, 1}, {&gradient, 1}, {1}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("2 of at most 2 rows")));
  EXPECT_THAT(Keys(*table), UnorderedElementsAre(1, 2));
}

TEST_F(RetentionTest, ATableWithoutOptionsHasNoMemoryForThem) {
  const auto plain = Table({});
  const auto stamped = Table({.ttl = absl::Hours(1)});
  EXPECT_EQ(plain->partition(0).exported_row_bytes(), 12u);
  EXPECT_EQ(stamped->partition(0).exported_row_bytes(), 16u);
}

// --- Random pushes against a map.

struct Case {
  std::string rule;
  tensor::DType dtype;
  Retention retention;
  int partitions;
};

// A table with a row for each key that has one in the tested table, trained in
// the same way. Rows of keys that lose theirs are forgotten with their table.
class Model {
 public:
  explicit Model(const TableSpec& spec) : spec_(spec) {
    spec_.retention = {};
    spec_.num_shards = 1;
  }

  bool Contains(uint64_t key) const { return rows_.contains(key); }
  size_t size() const { return rows_.size(); }
  void Erase(uint64_t key) { rows_.erase(key); }
  void Push(uint64_t key, const std::vector<float>& gradient) {
    auto& row = rows_[key];
    if (row == nullptr) row = *SparseTable::Create(spec_);
    ASSERT_THAT(row->Push({&key, 1}, gradient, {0.1}), IsOk());
  }
  // Weights and state.
  std::vector<std::byte> Row(uint64_t key) const {
    std::vector<std::byte> bytes;
    rows_.at(key)->ForEachRow([&](uint64_t, const std::byte* row) {
      bytes.assign(row, row + rows_.at(key)->format().layout().bytes());
    });
    return bytes;
  }
  std::vector<float> Weights(uint64_t key) {
    std::vector<float> weights(spec_.width);
    const auto row = rows_.find(key);
    EXPECT_THAT(
        (row == rows_.end() ? **SparseTable::Create(spec_) : *row->second)
            .Pull({&key, 1}, weights, MissingRows::kKeep),
        IsOk());
    return weights;
  }
  std::vector<uint64_t> Keys() const {
    std::vector<uint64_t> keys;
    for (const auto& [key, row] : rows_) keys.push_back(key);
    return keys;
  }

 private:
  TableSpec spec_;
  std::map<uint64_t, std::unique_ptr<SparseTable>> rows_;
};

class RetentionModelTest : public testing::TestWithParam<Case> {};

TEST_P(RetentionModelTest, RowsAreAsIfEachKeyHadItsOwnTable) {
  const Case& test = GetParam();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::mt19937_64 random(seed);
    async::SimulatedClock clock;
    const TableSpec spec{.name = "t",
                         .width = 3,
                         .dtype = test.dtype,
                         .rule = *optim::ParseRuleSpec(test.rule),
                         .initializer = Initializer::Uniform(-1, 1),
                         .seed = seed,
                         .retention = test.retention};
    const auto table = *SparseTable::Create(
        spec, {.num_partitions = test.partitions, .clock = &clock});
    Model model(spec);
    // Pushes of keys without rows, and the time of the last push.
    std::map<uint64_t, int> counts;
    std::map<uint64_t, absl::Duration> pushed;
    absl::Duration now;
    for (int round = 0; round < 100; ++round) {
      const absl::Duration step = absl::Seconds(random() % 3);
      clock.AdvanceBy(step);
      now += step;
      for (const uint64_t key : model.Keys()) {
        if (now - pushed[key] > test.retention.ttl) model.Erase(key);
      }
      std::set<uint64_t> chosen;
      const size_t wanted = 1 + random() % 30;
      while (chosen.size() < wanted) {
        // Some keys are in many pushes.
        chosen.insert(random() % (random() % 2 == 0 ? 20 : 200));
      }
      std::vector<uint64_t> keys(chosen.begin(), chosen.end());
      std::shuffle(keys.begin(), keys.end(), random);
      std::vector<float> gradients(keys.size() * 3);
      for (float& number : gradients) {
        number = static_cast<float>(random() % 1000) / 500 - 1;
      }
      const RetentionCounts before = table->retention_counts();
      ASSERT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
      const RetentionCounts after = table->retention_counts();

      std::set<uint64_t> rows;
      table->ForEachRow([&](uint64_t key, const std::byte*) {
        ASSERT_TRUE(rows.insert(key).second) << key << " has two rows";
      });
      int64_t not_admitted = 0;
      int64_t without_room = 0;
      for (size_t i = 0; i < keys.size(); ++i) {
        const uint64_t key = keys[i];
        const bool existed = model.Contains(key);
        const bool admitted =
            existed || ++counts[key] >= test.retention.admission_pushes;
        ASSERT_FALSE(existed && !rows.contains(key)) << key << " was evicted";
        ASSERT_FALSE(!admitted && rows.contains(key)) << key;
        not_admitted += admitted ? 0 : 1;
        if (!rows.contains(key)) {
          without_room += admitted ? 1 : 0;
          continue;
        }
        pushed[key] = now;
        model.Push(key,
                   {gradients.begin() + 3 * i, gradients.begin() + 3 * i + 3});
      }
      int64_t evicted = 0;
      for (const uint64_t key : model.Keys()) {
        if (rows.contains(key)) continue;
        model.Erase(key);
        ++evicted;
      }
      // A count that was halved admits later.
      EXPECT_GE(after.updates_not_admitted - before.updates_not_admitted,
                not_admitted);
      EXPECT_EQ(after.updates_not_admitted + after.updates_without_room,
                before.updates_not_admitted + before.updates_without_room +
                    not_admitted + without_room);
      EXPECT_EQ(after.rows_evicted - before.rows_evicted, evicted);
      if (test.retention.max_rows > 0) {
        ASSERT_LE(table->num_rows(), test.retention.max_rows);
      }
      ASSERT_EQ(rows.size(), model.size());
      table->ForEachRow([&](uint64_t key, const std::byte* row) {
        const std::vector<std::byte> expected = model.Row(key);
        ASSERT_EQ(std::memcmp(row, expected.data(), expected.size()), 0)
            << "row " << key << " in round " << round << " of seed " << seed;
      });
      for (int i = 0; i < 5; ++i) {
        const uint64_t key = random() % 200;
        std::vector<float> weights(3);
        ASSERT_THAT(table->Pull({&key, 1}, weights), IsOk());
        ASSERT_EQ(weights, model.Weights(key)) << key;
      }
      ASSERT_FALSE(HasFailure()) << "round " << round << " of seed " << seed;
    }
  }
}

constexpr auto kF32 = tensor::DType::kF32;
constexpr auto kF16 = tensor::DType::kF16;

INSTANTIATE_TEST_SUITE_P(
    Options, RetentionModelTest,
    testing::Values(
        Case{"SGD(lr=0.1)", kF32, {.admission_pushes = 4}, 3},
        Case{"SparseAdam(lr=0.1)", kF32, {.ttl = absl::Seconds(9)}, 1},
        Case{"RowWiseAdagrad(lr=0.1)", kF32, {.max_rows = 40}, 1},
        Case{"RowWiseAdagrad(lr=0.1)", kF16, {.max_rows = 40}, 3},
        Case{"FTRL(lr=0.1,l1=0.01)",
             kF32,
             {.admission_pushes = 2, .ttl = absl::Seconds(5), .max_rows = 50},
             2},
        Case{"Adagrad(lr=0.1)",
             kF16,
             {.admission_pushes = 3, .ttl = absl::Seconds(20), .max_rows = 25},
             1}));

}  // namespace
}  // namespace hawser::ps
