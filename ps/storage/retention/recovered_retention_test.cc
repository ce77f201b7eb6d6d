// Rows that are admitted, expire and are evicted, in snapshots and logs.

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

constexpr rpc::Incarnation kClient{7};

// Weights, state and seconds since the last push, by key.
using Rows = std::map<uint64_t, std::pair<std::string, int64_t>>;

Rows RowsOf(const SparseTable& table) {
  Rows rows;
  const RowLayout& layout = table.format().layout();
  table.ForEachRow([&](uint64_t key, const std::byte* row) {
    // The use of a row is its last part.
    rows[key] = {std::string(reinterpret_cast<const char*>(row),
                             layout.bytes() - sizeof(uint32_t)),
                 layout.use(row).Age(table.time())};
  });
  return rows;
}

void SortByHash(std::vector<uint64_t>& keys) {
  std::sort(keys.begin(), keys.end(),
            [](uint64_t a, uint64_t b) { return HashKey(a) < HashKey(b); });
}

class RecoveredRetentionTest : public testing::Test {
 protected:
  RecoveredRetentionTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(directory_.Open(), IsOk());
  }

  static TableSpec Spec(const Retention& retention) {
    return {.name = "t",
            .width = 2,
            .rule = {"RowWiseAdagrad", {{"lr", 0.1}}},
            .initializer = Initializer::Uniform(-1, 1),
            .retention = retention};
  }

  std::shared_ptr<LoggedTable> Create(const Retention& retention,
                                      int partitions = 3) {
    return *LoggedTable::Create(
        *SparseTable::Create(Spec(retention),
                             {.num_partitions = partitions, .clock = &clock_}),
        &directory_, PushLogging::kWrite);
  }

  std::shared_ptr<LoggedTable> Recover() {
    auto tables = LoggedTable::Recover(directory_, PushLogging::kWrite,
                                       {.clock = &clock_});
    EXPECT_THAT(tables, IsOk());
    EXPECT_EQ(tables->size(), 1);
    return (*tables)[0];
  }

  absl::Status Push(LoggedTable& table, uint64_t sequence,
                    std::vector<uint64_t> keys,
                    PushKind kind = PushKind::kUpdate) {
    SortByHash(keys);
    const std::vector<float> values(2 * keys.size(), 0.5f);
    return table
        .Push({{kClient, sequence}, {0.1}, keys, values, kind},
              *table.table().SplitOrdered(keys))
        .status();
  }

  std::string SnapshotPath() const {
    return absl::StrCat(path_, "/", ++snapshots_, ".snapshot");
  }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/recovered_retention");
  const RecoveryDirectory directory_{path_};
  mutable int snapshots_ = 0;
  async::SimulatedClock clock_;
};

// Restarts, snapshots that are written while pushes go on, and repeated pushes.
TEST_F(RecoveredRetentionTest, ARecoveryGivesTheSameRows) {
  const Retention retention{
      .admission_pushes = 2, .ttl = absl::Seconds(8), .max_rows = 30};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::filesystem::remove_all(path_);
    EXPECT_THAT(directory_.Open(), IsOk());
    std::shared_ptr<LoggedTable> table = Create(retention);
    uint64_t sequence = 0;
    std::vector<uint64_t> keys;
    auto kind = PushKind::kUpdate;
    const auto push = [&](bool may_repeat = true) {
      clock_.AdvanceBy(absl::Seconds(random() % 2));
      // Some pushes come twice.
      if (!may_repeat || sequence == 0 || random() % 4 != 0) {
        ++sequence;
        std::set<uint64_t> chosen;
        while (chosen.size() < 12) chosen.insert(random() % 60);
        keys.assign(chosen.begin(), chosen.end());
        kind = random() % 4 != 0   ? PushKind::kUpdate
               : random() % 2 == 0 ? PushKind::kAssign
                                   : PushKind::kAssignMissing;
      }
      ASSERT_THAT(Push(*table, sequence, keys, kind), IsOk());
    };
    for (int round = 0; round < 25; ++round) {
      for (uint64_t i = random() % 8; i > 0; --i) push();
      if (random() % 4 == 0) {
        ASSERT_THAT(table->Save([&](const SparseTable& rows, int64_t log,
                                    std::string& path) {
          for (uint64_t i = random() % 8; i > 0; --i) push();
          path = SnapshotPath();
          return WriteTableFile(rows, {.snapshot = 1, .log = log}, path);
        }),
                    IsOk());
      }
      for (uint64_t i = random() % 8; i > 0; --i) push();
      // The time of the last push that is logged is that of the table.
      push(/*may_repeat=*/false);
      const Rows before = RowsOf(table->table());
      table.reset();
      clock_.AdvanceBy(absl::Seconds(random() % 100));
      table = Recover();
      ASSERT_EQ(RowsOf(table->table()), before)
          << "round " << round << " of seed " << seed;
    }
    EXPECT_GT(sequence, 100u);
  }
}

TEST_F(RecoveredRetentionTest, AnEvictionIsLoggedOnceThereIsRoomAgain) {
  auto table = Create({.max_rows = 2}, 1);
  ASSERT_THAT(Push(*table, 1, {1, 2}), IsOk());
  // The kernel refuses to write beyond this size, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = std::filesystem::file_size(directory_.LogPath("t", 1)) + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = Push(*table, 2, {3, 4});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(Push(*table, 3, {4}), IsOk());
  ASSERT_THAT(Push(*table, 2, {3, 4}), IsOk());
  const Rows before = RowsOf(table->table());
  EXPECT_EQ(before.size(), 2u);
  table.reset();
  EXPECT_EQ(RowsOf(Recover()->table()), before);
}

TEST_F(RecoveredRetentionTest, RowsAgeOnlyWhileTheyAreHeld) {
  auto table = Create({.ttl = absl::Seconds(10)});
  ASSERT_THAT(Push(*table, 1, {1}), IsOk());
  clock_.AdvanceBy(absl::Seconds(6));
  ASSERT_THAT(Push(*table, 2, {2}), IsOk());
  table.reset();
  clock_.AdvanceBy(absl::Hours(1));
  table = Recover();
  clock_.AdvanceBy(absl::Seconds(4));
  EXPECT_EQ(RowsOf(table->table()).size(), 2u);
  clock_.AdvanceBy(absl::Seconds(1));
  EXPECT_FALSE(RowsOf(table->table()).contains(1));
  EXPECT_TRUE(RowsOf(table->table()).contains(2));
}

// Servers that were created at different times, and so have different times.
TEST_F(RecoveredRetentionTest, RowsKeepTheirAgesOnOtherServers) {
  const TableSpec spec = Spec({.ttl = absl::Hours(1)});
  std::vector<std::string> paths;
  Rows all;
  for (int64_t i = 0; i < 3; ++i) {
    const auto table = *SparseTable::Create(
        spec, {.shards = *ShardsOf({i, 3}, spec.num_shards), .clock = &clock_});
    for (uint64_t key = 0; key < 300; ++key) {
      const std::vector<float> gradient = {1, 1};
      (void)table->Push({&key, 1}, gradient, {0.1});
      if (key % 10 == 0) clock_.AdvanceBy(absl::Seconds(1));
    }
    paths.push_back(SnapshotPath());
    ASSERT_THAT(WriteTableFile(*table, {.snapshot = 1}, paths.back()), IsOk());
    all.merge(RowsOf(*table));
  }
  ASSERT_EQ(all.size(), 300u);
  Rows restored;
  for (int64_t i = 0; i < 2; ++i) {
    const auto table = *SparseTable::Create(
        spec, {.shards = *ShardsOf({i, 2}, spec.num_shards), .clock = &clock_});
    clock_.AdvanceBy(absl::Minutes(10));
    for (const std::string& path : paths) {
      ASSERT_THAT(ReadTableFiles({{path}}, *table), IsOk());
    }
    restored.merge(RowsOf(*table));
  }
  EXPECT_EQ(restored, all);
}

TEST_F(RecoveredRetentionTest, ASnapshotLeavesOutRowsThatHaveExpired) {
  const TableSpec spec = Spec({.ttl = absl::Seconds(10)});
  const auto table = *SparseTable::Create(spec, {.clock = &clock_});
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> gradients(4, 1);
  ASSERT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
  clock_.AdvanceBy(absl::Seconds(11));
  ASSERT_THAT(table->Push({&keys[0], 1}, {gradients.data(), 2}, {0.1}), IsOk());
  const std::string path = SnapshotPath();
  const auto size = WriteTableFile(*table, {.snapshot = 1}, path);
  ASSERT_THAT(size, IsOk());
  EXPECT_EQ(size->rows, 1);
  const auto restored = *SparseTable::Create(spec, {.clock = &clock_});
  ASSERT_THAT(ReadTableFiles({{path}}, *restored), IsOk());
  EXPECT_EQ(RowsOf(*restored), RowsOf(*table));
}

// The partitions of another machine are of other sizes.
TEST_F(RecoveredRetentionTest, ATableAboveItsLimitShrinksByAFewRowsPerPush) {
  const TableSpec spec = Spec({.max_rows = 200});
  const auto table =
      *SparseTable::Create(spec, {.num_partitions = 1, .clock = &clock_});
  std::vector<uint64_t> keys(200);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> gradients(400, 1);
  ASSERT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
  const std::string path = SnapshotPath();
  ASSERT_THAT(WriteTableFile(*table, {.snapshot = 1}, path), IsOk());
  const auto restored =
      *SparseTable::Create(spec, {.num_partitions = 100, .clock = &clock_});
  ASSERT_THAT(ReadTableFiles({{path}}, *restored), IsOk());
  EXPECT_EQ(restored->num_rows(), 200);
  for (size_t p = 0; p < restored->num_partitions(); ++p) {
    const int64_t rows = restored->partition(p).num_rows();
    const int64_t share = 2;
    for (int64_t left = rows; left > share; --left) {
      restored->partition(p).ForEachRow(
          [&](uint64_t key, const std::byte*) { keys[0] = key; });
      ASSERT_THAT(
          restored->Push({keys.data(), 1}, {gradients.data(), 2}, {0.1}),
          IsOk());
      EXPECT_EQ(restored->partition(p).num_rows(), left - 1);
    }
  }
  EXPECT_LE(restored->num_rows(), 200);
}

}  // namespace
}  // namespace hawser::ps
