// Tables with Retention options and more rows than memory for them, against
// tables in memory.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/failing_disk.h"
#include "ps/testing/random_pushes.h"
#include "ps/testing/table_content.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

constexpr uint64_t kKeys = 300;
constexpr size_t kWidth = 3;

class DiskRetentionTest : public testing::Test {
 protected:
  DiskRetentionTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(disk_.Open("w0"), IsOk());
    EXPECT_THAT(recovery_.Open(), IsOk());
  }
  ~DiskRetentionTest() override { std::filesystem::remove_all(path_); }

  SparseTableOptions Options(int partitions = 3) {
    return {.num_partitions = partitions, .clock = &clock_, .disk = &disk_};
  }

  static std::vector<float> Pull(SparseTable& table) {
    std::vector<uint64_t> keys(kKeys);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    std::vector<float> rows(keys.size() * kWidth);
    EXPECT_THAT(table.Pull(keys, rows), IsOk());
    return rows;
  }

  const std::string path_ = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->test_suite_name());
  RocksDbStorage disk_{path_ + "/disk"};
  const RecoveryDirectory recovery_{path_ + "/log"};
  async::SimulatedClock clock_;
};

struct Case {
  const char* name;
  std::string rule;
  tensor::DType dtype;
  Retention retention;
  int64_t rows_in_memory;
};

class DiskRetentionModelTest : public DiskRetentionTest,
                               public testing::WithParamInterface<Case> {
 protected:
  TableSpec Spec(uint64_t seed) const {
    return {.name = "t",
            .width = kWidth,
            .dtype = GetParam().dtype,
            .rule = *optim::ParseRuleSpec(GetParam().rule),
            .initializer = Initializer::Uniform(-1, 1),
            .seed = seed,
            .retention = GetParam().retention};
  }
  TableSpec DiskSpec(uint64_t seed) const {
    TableSpec spec = Spec(seed);
    spec.storage = TableStorage::RocksDb(GetParam().rows_in_memory);
    return spec;
  }
};

// Rows, with their state, ages and pushes, and all counts.
TEST_P(DiskRetentionModelTest, DecisionsAreThoseOfATableInMemory) {
  for (const bool logged : {false, true}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      std::filesystem::remove_all(path_ + "/log");
      ASSERT_THAT(recovery_.Open(), IsOk());
      RandomPushes pushes(seed, kKeys, kWidth);
      auto& random = pushes.random();
      const RecoveryDirectory memory_log(path_ + "/memory_log");
      std::filesystem::remove_all(path_ + "/memory_log");
      ASSERT_THAT(memory_log.Open(), IsOk());
      const auto memory = *LoggedTable::Create(
          *SparseTable::Create(Spec(seed), Options()),
          logged ? &memory_log : nullptr, PushLogging::kWrite);
      const auto disk = *LoggedTable::Create(
          *SparseTable::Create(DiskSpec(seed), Options()),
          logged ? &recovery_ : nullptr, PushLogging::kWrite);
      for (int round = 0; round < 200; ++round) {
        clock_.AdvanceBy(absl::Seconds(random() % 3));
        const RandomPush push = pushes.Next();
        for (LoggedTable* const table : {memory.get(), disk.get()}) {
          ASSERT_THAT(
              table->Push(push.push(), *table->table().SplitOrdered(push.keys)),
              IsOk());
        }
        ASSERT_EQ(disk->table().num_rows(), memory->table().num_rows());
        ASSERT_EQ(disk->table().retention_counts(),
                  memory->table().retention_counts());
        ASSERT_EQ(Pull(disk->table()), Pull(memory->table()))
            << "round " << round << " of seed " << seed;
        if (round % 20 != 0) continue;
        ASSERT_EQ(ContentOf(disk->table()), ContentOf(memory->table()))
            << "round " << round << " of seed " << seed;
      }
      if (!logged) continue;
      // Both recoveries replay the same pushes.
      const auto recovered_disk =
          LoggedTable::Recover(recovery_, PushLogging::kWrite, Options());
      const auto recovered_memory =
          LoggedTable::Recover(memory_log, PushLogging::kWrite, Options());
      ASSERT_THAT(recovered_disk, IsOk());
      ASSERT_THAT(recovered_memory, IsOk());
      EXPECT_EQ(ContentOf((*recovered_disk)[0]->table()),
                ContentOf((*recovered_memory)[0]->table()));
    }
  }
}

TEST_P(DiskRetentionModelTest, SnapshotsRestoreOntoAnyServers) {
  RandomPushes pushes(5, kKeys, kWidth);
  const auto table = *SparseTable::Create(DiskSpec(5), Options(1));
  for (int round = 0; round < 60; ++round) {
    clock_.AdvanceBy(absl::Seconds(pushes.random()() % 2));
    const RandomPush push = pushes.Next();
    ASSERT_THAT(ApplyPush(table->partition(0), push.push()), IsOk());
  }
  const std::string path = path_ + "/rows";
  ASSERT_THAT(WriteTableFile(*table, {}, path), IsOk());
  const TableContent content = ContentOf(*table);
  clock_.AdvanceBy(absl::Hours(1));
  std::map<uint64_t, std::string> rows;
  for (int64_t i = 0; i < 3; ++i) {
    SparseTableOptions options = Options(2);
    options.shards = *ShardsOf({i, 3}, table->spec().num_shards);
    const auto part = *SparseTable::Create(DiskSpec(5), options);
    ASSERT_THAT(ReadTableFiles({{path}}, *part), IsOk());
    rows.merge(ContentOf(*part).rows);
  }
  EXPECT_EQ(rows, content.rows);
}

constexpr auto kF32 = tensor::DType::kF32;
constexpr auto kF16 = tensor::DType::kF16;

INSTANTIATE_TEST_SUITE_P(
    Options, DiskRetentionModelTest,
    testing::Values(
        Case{"Admission", "SGD(lr=0.1)", kF32, {.admission_pushes = 4}, 20},
        Case{"Ttl", "SparseAdam(lr=0.1)", kF32, {.ttl = absl::Seconds(20)}, 5},
        Case{"Capacity", "RowWiseAdagrad(lr=0.1)", kF16, {.max_rows = 90}, 10},
        Case{"MoreMemoryThanRows",
             "RowWiseAdagrad(lr=0.1)",
             kF32,
             {.max_rows = 90},
             1000},
        Case{"All",
             "Adagrad(lr=0.1)",
             kF16,
             {.admission_pushes = 2, .ttl = absl::Seconds(25), .max_rows = 100},
             30}),
    [](const auto& test) { return test.param.name; });

// --- A disk that fails.

// A row whose removal from the disk failed does not come back.
TEST_F(DiskRetentionTest, ARemovedRowStaysRemovedIfTheDiskIsFull) {
  FailingDisk disk(disk_);
  TableSpec spec{.name = "t",
                 .width = 1,
                 .rule = {"SGD", {{"lr", 1}}},
                 .initializer = Initializer::Constant(100),
                 .retention = {.ttl = absl::Seconds(10)},
                 .storage = TableStorage::RocksDb(1)};
  const auto table = *SparseTable::Create(
      spec, {.num_partitions = 1, .clock = &clock_, .disk = &disk});
  const auto push = [&](uint64_t key) {
    const float gradient = -1;
    return table->Push({&key, 1}, {&gradient, 1}, {.learning_rate = 1});
  };
  const auto row = [&](uint64_t key) {
    float value = 0;
    EXPECT_THAT(table->Pull({&key, 1}, {&value, 1}), IsOk());
    return value;
  };
  for (const uint64_t key : {1, 2, 3}) ASSERT_THAT(push(key), IsOk());
  clock_.AdvanceBy(absl::Seconds(11));
  disk.set_full(true);
  EXPECT_THAT(push(1), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(row(2), 100);
  disk.set_full(false);
  ASSERT_THAT(push(1), IsOk());
  ASSERT_THAT(push(2), IsOk());
  EXPECT_EQ(row(1), 101);
  EXPECT_EQ(row(2), 101);
  EXPECT_EQ(row(3), 100);
  EXPECT_EQ(ContentOf(*table).rows.size(), 2u);
}

// The keys and uses of all rows are in memory, rows_in_memory of them with
// their weights.
TEST_F(DiskRetentionTest, MemoryIsThatOfUsesAndOfTheRowsInMemory) {
  TableSpec spec{.name = "t",
                 .width = 64,
                 .retention = {.max_rows = 50'000},
                 .storage = TableStorage::RocksDb(1000)};
  const auto table = *SparseTable::Create(spec, Options(1));
  std::vector<uint64_t> keys(500);
  const std::vector<float> gradients(keys.size() * 64, 1);
  for (uint64_t begin = 0; begin < 60'000; begin += keys.size()) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = begin + i;
    ASSERT_THAT(table->Push(keys, gradients, {.learning_rate = 0.1}), IsOk());
  }
  EXPECT_EQ(table->num_rows(), 50'000);
  EXPECT_LE(table->bytes(), 50'000 * 26 + 2000 * 300);
}

}  // namespace
}  // namespace hawser::ps
