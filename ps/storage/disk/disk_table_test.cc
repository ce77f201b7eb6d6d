// Tables with more rows than memory for them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_export.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/failing_disk.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 3;
constexpr rpc::Incarnation kClient{7};

class DiskTableTest : public testing::Test {
 protected:
  DiskTableTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(disk_.Open("w0"), IsOk());
  }
  ~DiskTableTest() override { std::filesystem::remove_all(path_); }

  static TableSpec Spec(int64_t rows_in_memory, const std::string& rule,
                        tensor::DType dtype = tensor::DType::kF32) {
    TableSpec spec{.name = "a/b",
                   .width = kWidth,
                   .dtype = dtype,
                   .rule = *optim::ParseRuleSpec(rule),
                   .initializer = Initializer::Uniform(-1, 1)};
    if (rows_in_memory > 0)
      spec.storage = TableStorage::RocksDb(rows_in_memory);
    return spec;
  }

  std::unique_ptr<SparseTable> Create(const TableSpec& spec,
                                      int partitions = 3) {
    auto table = SparseTable::Create(
        spec, {.num_partitions = partitions, .disk = &disk_});
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  // Pushes in which some keys are often and most are rare.
  static std::vector<uint64_t> RandomKeys(std::mt19937_64& random,
                                          uint64_t num_keys) {
    std::set<uint64_t> chosen;
    const size_t wanted = 1 + random() % 60;
    while (chosen.size() < wanted) {
      chosen.insert(random() % (random() % 2 == 0 ? num_keys / 20 : num_keys));
    }
    std::vector<uint64_t> keys(chosen.begin(), chosen.end());
    std::sort(keys.begin(), keys.end(),
              [](uint64_t a, uint64_t b) { return HashKey(a) < HashKey(b); });
    return keys;
  }

  static std::vector<float> RandomGradients(std::mt19937_64& random,
                                            size_t rows) {
    std::vector<float> gradients(rows * kWidth);
    for (float& g : gradients) g = static_cast<float>(random() % 200) / 100 - 1;
    return gradients;
  }

  static std::vector<float> Pull(SparseTable& table, uint64_t num_keys) {
    std::vector<uint64_t> keys(num_keys);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    std::vector<float> rows(keys.size() * kWidth);
    EXPECT_THAT(table.Pull(keys, rows, MissingRows::kKeep), IsOk());
    return rows;
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/disk_table");
  RocksDbStorage disk_{path_ + "/disk"};
};

// Ten times as many rows as there is memory for.
TEST_F(DiskTableTest, RowsAreBitByBitThoseOfATableInMemory) {
  constexpr uint64_t kKeys = 2000;
  struct Case {
    std::string rule;
    tensor::DType dtype;
    int partitions;
  };
  for (const Case& test :
       {Case{"RowWiseAdagrad(lr=0.1)", tensor::DType::kF32, 1},
        Case{"SparseAdam(lr=0.1)", tensor::DType::kF32, 3},
        Case{"Adagrad(lr=0.1)", tensor::DType::kF16, 2}}) {
    const auto table =
        Create(Spec(kKeys / 10, test.rule, test.dtype), test.partitions);
    const auto memory = Create(Spec(0, test.rule, test.dtype));
    std::mt19937_64 random(1);
    for (int round = 0; round < 400; ++round) {
      std::vector<uint64_t> keys = RandomKeys(random, kKeys);
      std::shuffle(keys.begin(), keys.end(), random);
      // Repeated keys, too.
      keys.push_back(keys[0]);
      const std::vector<float> gradients = RandomGradients(random, keys.size());
      ASSERT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
      ASSERT_THAT(memory->Push(keys, gradients, {0.1}), IsOk());
      if (round % 40 == 0) {
        ASSERT_EQ(Pull(*table, kKeys), Pull(*memory, kKeys)) << round;
      }
    }
    ASSERT_EQ(Pull(*table, kKeys), Pull(*memory, kKeys));
    EXPECT_EQ(table->num_rows(), memory->num_rows());
    EXPECT_GT(table->num_rows(), static_cast<int64_t>(kKeys / 2));
    int64_t in_memory = 0;
    table->ForEachRow([&](uint64_t, const std::byte*) { ++in_memory; });
    EXPECT_LE(in_memory, static_cast<int64_t>(kKeys / 10 + 61));
  }
}

TEST_F(DiskTableTest, AssignmentsFindRowsOnTheDisk) {
  const auto table = Create(Spec(1, "SGD(lr=1)"), 1);
  TablePartition& partition = table->partition(0);
  std::vector<uint64_t> keys = {1, 2, 3};
  std::vector<float> weights = {1, 1, 1, 2, 2, 2, 3, 3, 3};
  ASSERT_THAT(partition.Assign({keys.data(), 3}, weights.data(),
                               ExistingRows::kReplace),
              IsOk());
  // Of these, 1 to 3 are in memory or on the disk.
  keys = {4, 1, 2, 3};
  weights.assign(12, 9);
  ASSERT_THAT(
      partition.Assign({keys.data(), 4}, weights.data(), ExistingRows::kKeep),
      IsOk());
  std::vector<float> rows(12);
  ASSERT_THAT(table->Pull(keys, rows), IsOk());
  EXPECT_EQ(rows, (std::vector<float>{9, 9, 9, 1, 1, 1, 2, 2, 2, 3, 3, 3}));
  EXPECT_EQ(table->num_rows(), 4);
}

TEST_F(DiskTableTest, PullsCreateNoRows) {
  const auto table = Create(Spec(10, "SGD(lr=1)"));
  Pull(*table, 100);
  std::vector<uint64_t> keys = {1, 2};
  std::vector<float> rows(2 * kWidth);
  ASSERT_THAT(table->Pull(keys, rows), IsOk());
  EXPECT_EQ(table->num_rows(), 0);
}

TEST_F(DiskTableTest, SnapshotsHaveAllRowsAndRestoreOntoAnyServers) {
  constexpr uint64_t kKeys = 1000;
  const TableSpec spec = Spec(50, "SparseAdam(lr=0.1)");
  const auto table = Create(spec);
  std::mt19937_64 random(2);
  const auto train = [&](SparseTable& trained, uint64_t seed) {
    std::mt19937_64 pushes(seed);
    for (int i = 0; i < 100; ++i) {
      const std::vector<uint64_t> keys = RandomKeys(pushes, kKeys);
      const std::vector<float> gradients = RandomGradients(pushes, keys.size());
      ASSERT_THAT(trained.Push(keys, gradients, {0.1}), IsOk());
    }
  };
  train(*table, 1);
  const std::string path = path_ + "/snapshot";
  const auto size = WriteTableFile(*table, {.snapshot = 1}, path);
  ASSERT_THAT(size, IsOk());
  EXPECT_EQ(size->rows, table->num_rows());
  const auto restored = Create(spec, 5);
  ASSERT_THAT(ReadTableFiles({{path}}, *restored), IsOk());
  EXPECT_EQ(restored->num_rows(), table->num_rows());
  int64_t parts = 0;
  for (int64_t i = 0; i < 2; ++i) {
    const auto part = *SparseTable::Create(
        spec, {.shards = *ShardsOf({i, 2}, spec.num_shards), .disk = &disk_});
    ASSERT_THAT(ReadTableFiles({{path}}, *part), IsOk());
    parts += part->num_rows();
  }
  EXPECT_EQ(parts, table->num_rows());
  // Moments and step counts, too.
  train(*table, 2);
  train(*restored, 2);
  EXPECT_EQ(Pull(*restored, kKeys), Pull(*table, kKeys));
}

TEST_F(DiskTableTest, ExportHasTheRowsOnTheDisk) {
  const auto table = Create(Spec(50, "SGD(lr=1)"));
  std::vector<int64_t> expected;
  for (uint64_t key = 0; key < 500; ++key) {
    ASSERT_THAT(table->Push(std::vector<uint64_t>{key},
                            std::vector<float>(kWidth), {1}),
                IsOk());
    expected.push_back(static_cast<int64_t>(key));
  }
  const auto tensors = ExportTable(*table);
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ((*tensors)[0].second.ToVector<int64_t>(), expected);
  EXPECT_EQ((*tensors)[1].second.ToVector<float>(), Pull(*table, 500));
}

TEST_F(DiskTableTest, ARestartedServerHasAllPushes) {
  constexpr uint64_t kKeys = 500;
  const TableSpec spec = Spec(20, "RowWiseAdagrad(lr=0.1)");
  const RecoveryDirectory directory(path_ + "/log");
  ASSERT_THAT(directory.Open(), IsOk());
  std::shared_ptr<LoggedTable> table =
      *LoggedTable::Create(Create(spec), &directory, PushLogging::kWrite);
  const auto memory = Create(Spec(0, "RowWiseAdagrad(lr=0.1)"));
  std::mt19937_64 random(3);
  uint64_t sequence = 0;
  const auto push = [&] {
    const std::vector<uint64_t> keys = RandomKeys(random, kKeys);
    const std::vector<float> gradients = RandomGradients(random, keys.size());
    ++sequence;
    // The second one is recognised.
    for (int i = 0; i < 2; ++i) {
      ASSERT_THAT(table->Push({{kClient, sequence}, {0.1}, keys, gradients},
                              *table->table().SplitOrdered(keys)),
                  IsOk());
    }
    ASSERT_THAT(memory->Push(keys, gradients, {0.1}), IsOk());
  };
  for (int restart = 0; restart < 4; ++restart) {
    for (int i = 0; i < 30; ++i) push();
    if (restart % 2 == 0) {
      ASSERT_THAT(table->Save([&](const SparseTable& rows, int64_t log,
                                  std::string& path) {
        push();
        path = absl::StrCat(path_, "/", restart, ".snapshot");
        return WriteTableFile(rows, {.snapshot = 1, .log = log}, path);
      }),
                  IsOk());
      for (int i = 0; i < 30; ++i) push();
    }
    table.reset();
    // The rows on the disk end with the server.
    ASSERT_THAT(disk_.Open("w0"), IsOk());
    auto recovered =
        LoggedTable::Recover(directory, PushLogging::kWrite, {.disk = &disk_});
    ASSERT_THAT(recovered, IsOk());
    ASSERT_EQ(recovered->size(), 1u);
    table = (*recovered)[0];
    ASSERT_EQ(Pull(table->table(), kKeys), Pull(*memory, kKeys)) << restart;
  }
}

TEST_F(DiskTableTest, AServerWithoutADiskRefusesTheTable) {
  EXPECT_THAT(SparseTable::Create(Spec(10, "SGD(lr=1)")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("TableServiceOptions::disk")));
}

TEST_F(DiskTableTest, ATableTakesItsFilesWithIt) {
  {
    const auto table = Create(Spec(10, "SGD(lr=1)"));
    EXPECT_FALSE(std::filesystem::is_empty(path_ + "/disk/w0"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_ + "/disk/w0"));
}

// --- A disk that fails.

TEST_F(DiskTableTest, APushThatCannotEvictChangesNothing) {
  FailingDisk disk(disk_);
  const auto table = *SparseTable::Create(Spec(5, "SGD(lr=1)"),
                                          {.num_partitions = 1, .disk = &disk});
  const std::vector<float> gradients(5 * kWidth, 1);
  const std::vector<uint64_t> keys = {0, 1, 2, 3, 4};
  const std::vector<uint64_t> others = {5, 6, 7, 8, 1};
  ASSERT_THAT(table->Push(keys, gradients, {1}), IsOk());
  const std::vector<float> before = Pull(*table, 10);
  disk.set_full(true);
  EXPECT_THAT(table->Push(others, gradients, {1}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Pull(*table, 10), before);
  EXPECT_EQ(table->num_rows(), 5);
  // Rows in memory are served.
  EXPECT_THAT(table->Push(keys, gradients, {1}), IsOk());
  disk.set_full(false);
  EXPECT_THAT(table->Push(others, gradients, {1}), IsOk());
  EXPECT_EQ(table->num_rows(), 9);
}

}  // namespace
}  // namespace hawser::ps
