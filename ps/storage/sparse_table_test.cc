#include "ps/storage/sparse_table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/push_window.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/rows/initial_row.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

std::unique_ptr<SparseTable> Table(const TableSpec& spec, int partitions = 3) {
  return *SparseTable::Create(spec, {.num_partitions = partitions});
}

std::vector<float> Pull(SparseTable& table, const std::vector<uint64_t>& keys,
                        MissingRows missing = MissingRows::kCreate) {
  std::vector<float> rows(keys.size() * table.spec().width);
  EXPECT_THAT(table.Pull(keys, rows, missing), IsOk());
  return rows;
}

// n numbers, roughly in [-1, 1], which depend on `salt`.
std::vector<float> Wave(size_t n, double salt) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(std::sin(salt + 1.7 * i));
  }
  return values;
}

TEST(SparseTableTest, RowsAreBornWithTheirInitialWeights) {
  const TableSpec spec{.name = "t",
                       .width = 5,
                       .initializer = Initializer::Uniform(-1, 1),
                       .seed = 11};
  const auto table = Table(spec);
  const std::vector<uint64_t> keys = {7, 0, UINT64_MAX, 7};
  const std::vector<float> rows = Pull(*table, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<float> expected(5);
    WriteInitialRow(spec.initializer, spec.seed, keys[i], expected);
    EXPECT_EQ(
        std::vector<float>(rows.begin() + 5 * i, rows.begin() + 5 * i + 5),
        expected);
  }
  EXPECT_EQ(table->num_rows(), 3);
}

TEST(SparseTableTest, PullCanLeaveMissingRowsMissing) {
  const auto table =
      Table({.name = "t", .width = 2, .initializer = Initializer::Constant(3)});
  EXPECT_EQ(Pull(*table, {1, 2}, MissingRows::kKeep),
            (std::vector<float>{3, 3, 3, 3}));
  EXPECT_EQ(table->num_rows(), 0);
}

TEST(SparseTableTest, SizesThatDoNotMatchAreRefused) {
  const auto table = Table({.name = "t", .width = 2});
  const std::vector<uint64_t> keys = {1, 2};
  std::vector<float> three(3);
  EXPECT_THAT(table->Pull(keys, three),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 rows of 2 numbers are 4 numbers, not 3")));
  EXPECT_THAT(table->Push(keys, three, {0.1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(table->num_rows(), 0);
}

TEST(SparseTableTest, RepeatedKeysOfAPushAreUpdatedInOrder) {
  for (const tensor::DType dtype :
       {tensor::DType::kF32, tensor::DType::kBF16}) {
    const auto table = Table({.name = "t",
                              .width = 1,
                              .dtype = dtype,
                              .rule = {"SGD", {{"lr", 1}}}});
    const std::vector<uint64_t> keys = {5, 6, 5, 5};
    ASSERT_THAT(table->Push(keys, std::vector<float>{1, 2, 4, 8}, {1}), IsOk());
    EXPECT_EQ(Pull(*table, {5, 6}), (std::vector<float>{-13, -2}));
  }
}

struct Case {
  std::string rule;
  int64_t width;
  int partitions;
};

class SparseTableRuleTest : public testing::TestWithParam<Case> {};

// Every row is trained as the rule trains a parameter of its own, through more
// keys than a group of the pipeline and growing maps.
TEST_P(SparseTableRuleTest, UpdatesEachRowAsTheRuleDoes) {
  const auto& [text, width, partitions] = GetParam();
  const TableSpec spec{.name = "t",
                       .width = width,
                       .rule = *optim::ParseRuleSpec(text),
                       .initializer = Initializer::Uniform(-1, 1)};
  const auto table = Table(spec, partitions);
  const auto rule = *optim::MakeUpdateRule(spec.rule);
  struct Trained {
    Tensor weights;
    optim::ParameterState state;
  };
  std::map<uint64_t, Trained> expected;
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::set<uint64_t> chosen;
    const size_t wanted = random() % 300;
    while (chosen.size() < wanted) chosen.insert(random() % 500);
    std::vector<uint64_t> keys(chosen.begin(), chosen.end());
    std::shuffle(keys.begin(), keys.end(), random);
    const std::vector<float> gradients = Wave(keys.size() * width, round);
    ASSERT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
    for (size_t i = 0; i < keys.size(); ++i) {
      Trained& row = expected[keys[i]];
      if (!row.weights.defined()) {
        std::vector<float> initial(width);
        WriteInitialRow(spec.initializer, 0, keys[i], initial);
        row.weights = Tensor::FromVector(initial, {1, width});
      }
      const auto* begin = gradients.data() + i * width;
      ASSERT_THAT(
          rule->ApplyRows(
              row.weights, Tensor::FromVector(std::vector<int64_t>{0}, {1}),
              Tensor::FromVector(std::vector<float>(begin, begin + width),
                                 {1, width}),
              row.state, {0.1}),
          IsOk());
    }
  }
  ASSERT_EQ(table->num_rows(), static_cast<int64_t>(expected.size()));
  for (const auto& [key, row] : expected) {
    ASSERT_EQ(Pull(*table, {key}), row.weights.ToVector<float>()) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SparseTableRuleTest,
    testing::Values(Case{"RowWiseAdagrad(lr=0.1)", 16, 1},
                    Case{"RowWiseAdagrad(lr=0.1)", 3, 4},
                    Case{"SGD(lr=0.1)", 8, 2}, Case{"Adagrad(lr=0.1)", 17, 3},
                    Case{"Adagrad(lr=0.1,lr_decay=0.5)", 4, 3},
                    Case{"SparseAdam(lr=0.1)", 64, 5},
                    Case{"FTRL(lr=0.1,l1=0.01)", 1, 7}));

// A weight that moves by a hundredth of its last bit a hundred times moves by
// one step on average; rounded to nearest it would stay.
TEST(SparseTableTest, SmallGradientsMoveSixteenBitRows) {
  const auto table = Table({.name = "t",
                            .width = 64,
                            .dtype = tensor::DType::kBF16,
                            .rule = {"SGD", {{"lr", 1}}},
                            .initializer = Initializer::Constant(1)});
  const std::vector<uint64_t> key = {1};
  const std::vector<float> gradient(64, -0x1p-7f / 100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(table->Push(key, gradient, {1}), IsOk());
  }
  double sum = 0;
  for (float weight : Pull(*table, key)) sum += weight;
  EXPECT_NEAR(sum / 64, 1 + 0x1p-7, 0.6 * 0x1p-7);
}

// Threads that push the integers of disjoint and of shared keys: no update is
// lost, and no reader sees half of a row.
TEST(SparseTableTest, ConcurrentPushesAddUp) {
  constexpr int kThreads = 4;
  constexpr int kPushes = 200;
  const auto table =
      Table({.name = "t", .width = 16, .rule = {"SGD", {{"lr", 1}}}},
            /*partitions=*/2);
  std::vector<uint64_t> keys(100);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::atomic<bool> torn{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const std::vector<float> ones(keys.size() * 16, -1);
      std::vector<float> rows(keys.size() * 16);
      for (int i = 0; i < kPushes; ++i) {
        if (!table->Push(keys, ones, {1}).ok()) torn = true;
        if (!table->Pull(keys, rows).ok()) torn = true;
        for (size_t j = 0; j < rows.size(); ++j) {
          if (rows[j] != rows[j / 16 * 16]) torn = true;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(Pull(*table, keys),
            std::vector<float>(keys.size() * 16, kThreads * kPushes));
}

TEST(SparseTableTest, VisitsEveryRowOnce) {
  const auto table = Table({.name = "t", .width = 2});
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 1000; ++key) keys.push_back(key * key);
  Pull(*table, keys);
  std::vector<uint64_t> visited;
  table->ForEachRow([&](uint64_t key, const std::byte* row) {
    visited.push_back(key);
    std::vector<float> weights(2, 7);
    ReadWeights(table->format().layout(), row, weights.data());
    EXPECT_EQ(weights, (std::vector<float>{0, 0}));
  });
  EXPECT_THAT(visited, testing::UnorderedElementsAreArray(keys));
}

TEST(SparseTableTest, KeysOfOtherShardsAreRefused) {
  const TableSpec spec{.name = "t", .width = 1, .num_shards = 10};
  std::vector<uint64_t> keys(100);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  size_t held = 0;
  for (int64_t first : {0, 3, 9}) {
    const auto table =
        *SparseTable::Create(spec, {.shards = ShardRange{first, 1}});
    for (uint64_t key : keys) {
      float row = 0;
      const absl::Status status = table->Pull({&key, 1}, {&row, 1});
      if (status.ok()) {
        ++held;
        continue;
      }
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("this server holds the shards")));
    }
    std::vector<float> gradients(keys.size(), 1);
    const int64_t rows = table->num_rows();
    EXPECT_THAT(table->Push(keys, gradients, {1}),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(table->num_rows(), rows);
  }
  // 30 of 300 on average.
  EXPECT_GT(held, 15u);
  EXPECT_LT(held, 45u);
  EXPECT_THAT(SparseTable::Create(spec, {.shards = ShardRange{5, 6}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not within its 10 shards")));
}

TEST(SparseTableTest, RowsBeyondTheLimitAreNotCreated) {
  const auto table = *SparseTable::Create(
      {.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}},
      {.num_partitions = 1, .max_rows = 3});
  Pull(*table, {1, 2});
  std::vector<float> rows(3, 1);
  const std::vector<uint64_t> too_many = {1, 3, 4};
  EXPECT_THAT(table->Pull(too_many, rows),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("2 of at most 3 rows")));
  EXPECT_THAT(table->Push(too_many, rows, {1}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(table->num_rows(), 2);
  // Rows that exist are served.
  EXPECT_THAT(table->Push(std::vector<uint64_t>{1, 2, 1, 2},
                          std::vector<float>{1, 1, 1, 1}, {1}),
              IsOk());
  EXPECT_EQ(Pull(*table, {1, 2, 3}), (std::vector<float>{-2, -2, 0}));
  EXPECT_EQ(Pull(*table, {1, 3, 4}, MissingRows::kKeep),
            (std::vector<float>{-2, 0, 0}));
}

TEST(SparseTableTest, OrderedKeysSplitIntoOneRangePerPartition) {
  const auto table = Table({.name = "t", .width = 1}, 5);
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  EXPECT_THAT(table->SplitOrdered(keys),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not in the order of the hashes")));
  std::sort(keys.begin(), keys.end(),
            [](uint64_t a, uint64_t b) { return HashKey(a) < HashKey(b); });
  const auto ranges = table->SplitOrdered(keys);
  ASSERT_THAT(ranges, IsOk());
  ASSERT_EQ(ranges->size(), 5u);
  size_t end = 0;
  for (const PartitionRange& range : *ranges) {
    EXPECT_EQ(range.begin, end);
    end = range.end;
  }
  EXPECT_EQ(end, keys.size());
  keys[7] = keys[6];
  EXPECT_THAT(table->SplitOrdered(keys),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("key 7 of the request, ")));
}

TEST(SparseTableTest, RepeatedPushIsAppliedOnce) {
  const auto table =
      Table({.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}}, 1);
  const std::vector<uint64_t> key = {1};
  TablePartition& partition = *(*table->SplitOrdered(key))[0].partition;
  const float gradient = -1;
  const auto push = [&](uint64_t client, uint64_t sequence) {
    return partition.Push({key.data(), 1}, &gradient, {1},
                          PushId{rpc::Incarnation{client}, sequence});
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_THAT(push(7, 1), IsOk());
    EXPECT_THAT(push(7, 2), IsOk());
    EXPECT_THAT(push(8, 1), IsOk());
  }
  EXPECT_EQ(Pull(*table, key), std::vector<float>{3});
  EXPECT_THAT(push(7, 2 + PushWindow::kDepth), IsOk());
  EXPECT_THAT(push(7, 2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("push 2 was overtaken")));
  EXPECT_EQ(Pull(*table, key), std::vector<float>{4});
  table->Forget(rpc::Incarnation{7});
  EXPECT_THAT(push(7, 2), IsOk());
  EXPECT_EQ(Pull(*table, key), std::vector<float>{5});
}

TEST(SparseTableTest, MemoryPerRowIsAtMost135PercentOfItsPayload) {
  const auto table = Table({.name = "t", .width = 16}, 8);
  std::vector<uint64_t> keys(1000);
  for (uint64_t begin = 0; begin < 2'000'000; begin += keys.size()) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = begin + i;
    Pull(*table, keys);
  }
  const double payload = 16 * sizeof(float) * 2e6;
  EXPECT_LE(static_cast<double>(table->bytes()), 1.35 * payload);
}

}  // namespace
}  // namespace hawser::ps
