#include "ps/storage/logged_table.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr rpc::Incarnation kClient{7};

class LoggedTableTest : public testing::TestWithParam<PushLogging> {
 protected:
  LoggedTableTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(directory_.Open(), IsOk());
  }

  std::shared_ptr<LoggedTable> Create() {
    absl::StatusOr<std::shared_ptr<LoggedTable>> table = LoggedTable::Create(
        *SparseTable::Create(
            {.name = "a/b", .width = 1, .rule = {"SGD", {{"lr", 1}}}},
            {.num_partitions = 3}),
        &directory_, logging());
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  // The only table of the directory, as after the end of its server.
  absl::StatusOr<std::shared_ptr<LoggedTable>> Recover() {
    auto tables = LoggedTable::Recover(directory_, logging());
    if (!tables.ok()) return tables.status();
    if (tables->size() != 1) return absl::NotFoundError("no table");
    return (*tables)[0];
  }

  static PushLogging logging() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return test->value_param() == nullptr ? PushLogging::kWrite : GetParam();
  }

  // A push of -1 to the row of `key`.
  static absl::Status Push(LoggedTable& table, uint64_t sequence,
                           uint64_t key = 1) {
    const std::vector<uint64_t> keys = {key};
    const std::vector<float> gradients = {-1};
    return table
        .Push({{kClient, sequence}, {1}, keys, gradients},
              *table.table().SplitOrdered(keys))
        .status();
  }

  static float Row(LoggedTable& table, uint64_t key = 1) {
    float row = 0;
    EXPECT_THAT(table.table().Pull({&key, 1}, {&row, 1}, MissingRows::kKeep),
                IsOk());
    return row;
  }

  absl::StatusOr<TableFileSize> Save(LoggedTable& table,
                                     const std::string& name) {
    return table.Save(
        [&](const SparseTable& rows, int64_t log, std::string& path) {
          path = absl::StrCat(path_, "/", name, ".snapshot");
          return WriteTableFile(rows, {.snapshot = 1, .log = log}, path);
        });
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/logged_table");
  const RecoveryDirectory directory_{path_};
};

TEST_P(LoggedTableTest, RecoversEveryAcknowledgedPush) {
  {
    const auto table = Create();
    for (uint64_t i = 1; i <= 100; ++i) {
      ASSERT_THAT(Push(*table, i, i % 10), IsOk());
    }
  }
  for (int restart = 0; restart < 3; ++restart) {
    const auto table = Recover();
    ASSERT_THAT(table, IsOk());
    EXPECT_EQ((*table)->table().spec().name, "a/b");
    for (uint64_t key = 0; key < 10; ++key) {
      EXPECT_EQ(Row(**table, key), 10 + restart);
    }
    // A repeated push is recognised, and later ones are logged as well.
    ASSERT_THAT(Push(**table, 100, 0), IsOk());
    for (uint64_t key = 0; key < 10; ++key) {
      ASSERT_THAT(Push(**table, 101 + 10 * restart + key, key), IsOk());
    }
  }
}

TEST_P(LoggedTableTest, RecordsTheTimesOfSyncs) {
  const auto table = Create();
  const auto num_syncs = [&] {
    const auto counts = table->statistics().sync_durations().counts();
    return std::accumulate(counts.buckets.begin(), counts.buckets.end(),
                           int64_t{0});
  };
  const int64_t before = num_syncs();
  ASSERT_THAT(Push(*table, {1}), IsOk());
  EXPECT_EQ(num_syncs() - before, logging() == PushLogging::kSync ? 1 : 0);
}

TEST_P(LoggedTableTest, RecoversAssignmentsInTheirOrder) {
  {
    const auto table = Create();
    const auto assign = [&](uint64_t sequence, PushKind kind, uint64_t key,
                            float weight) {
      const std::vector<uint64_t> keys = {key};
      const std::vector<float> weights = {weight};
      return table->Push({{kClient, sequence}, {0}, keys, weights, kind},
                         *table->table().SplitOrdered(keys));
    };
    ASSERT_THAT(Push(*table, 1, {1}), IsOk());
    ASSERT_THAT(assign(2, PushKind::kAssign, 1, 50), IsOk());
    ASSERT_THAT(Push(*table, 3, {1}), IsOk());
    ASSERT_THAT(assign(4, PushKind::kAssignMissing, 1, 70), IsOk());
    ASSERT_THAT(assign(5, PushKind::kAssignMissing, 2, 80), IsOk());
    // Repeated.
    ASSERT_THAT(assign(2, PushKind::kAssign, 1, 50), IsOk());
  }
  const auto table = Recover();
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(Row(**table, 1), 51);
  EXPECT_EQ(Row(**table, 2), 80);
}

INSTANTIATE_TEST_SUITE_P(Logging, LoggedTableTest,
                         testing::Values(PushLogging::kWrite,
                                         PushLogging::kSync));

using RecoveryTest = LoggedTableTest;

TEST_F(RecoveryTest, SnapshotsShortenTheLogs) {
  {
    const auto table = Create();
    uint64_t sequence = 0;
    for (const char* name : {"a", "b", "c"}) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_THAT(Push(*table, ++sequence), IsOk());
      }
      ASSERT_THAT(Save(*table, name), IsOk());
    }
    ASSERT_THAT(Push(*table, ++sequence), IsOk());
    // Those of the last two snapshots.
    const auto files = directory_.List();
    ASSERT_THAT(files, IsOk());
    EXPECT_THAT(files->at("a/b").rows, testing::ElementsAre(3, 4));
    EXPECT_THAT(files->at("a/b").logs, testing::ElementsAre(3, 4));
  }
  const auto table = Recover();
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(Row(**table), 16);
}

TEST_F(RecoveryTest, ADamagedSnapshotIsReplacedByTheOneBefore) {
  {
    const auto table = Create();
    for (uint64_t i = 1; i <= 5; ++i) ASSERT_THAT(Push(*table, i), IsOk());
    ASSERT_THAT(Save(*table, "a"), IsOk());
    for (uint64_t i = 6; i <= 9; ++i) ASSERT_THAT(Push(*table, i), IsOk());
    ASSERT_THAT(Save(*table, "b"), IsOk());
    ASSERT_THAT(Push(*table, 10), IsOk());
  }
  std::string bytes = Read(directory_.RowsPath("a/b", 3));
  bytes[bytes.size() / 2] ^= 1;
  Write(directory_.RowsPath("a/b", 3), bytes);
  {
    const auto table = Recover();
    ASSERT_THAT(table, IsOk());
    EXPECT_EQ(Row(**table), 10);
  }
  bytes = Read(directory_.RowsPath("a/b", 2));
  bytes[bytes.size() / 2] ^= 1;
  Write(directory_.RowsPath("a/b", 2), bytes);
  EXPECT_THAT(Recover(), StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr("is damaged at byte")));
}

// The process may end after any byte of a write.
TEST_F(RecoveryTest, AnIncompleteLastRecordIsLeftOut) {
  {
    const auto table = Create();
    ASSERT_THAT(Push(*table, {1}), IsOk());
  }
  const std::string log = directory_.LogPath("a/b", 1);
  const std::string one = Read(log);
  {
    const auto table = Recover();
    ASSERT_THAT(Push(**table, {2}), IsOk());
  }
  const std::string next = directory_.LogPath("a/b", 2);
  const std::string whole = Read(next);
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    std::filesystem::remove(directory_.LogPath("a/b", 3));
    std::filesystem::remove(directory_.LogPath("a/b", 4));
    Write(next, whole.substr(0, bytes));
    {
      const auto table = Recover();
      ASSERT_THAT(table, IsOk()) << bytes;
      EXPECT_EQ(Row(**table), bytes == whole.size() ? 2 : 1) << bytes;
      ASSERT_THAT(Push(**table, 3), IsOk());
    }
    // The next recovery reads beyond it.
    const auto table = Recover();
    ASSERT_THAT(table, IsOk()) << bytes;
    EXPECT_EQ(Row(**table), bytes == whole.size() ? 3 : 2) << bytes;
  }
}

TEST_F(RecoveryTest, DamageBeforeTheLastRecordAndMissingLogsAreNoticed) {
  {
    const auto table = Create();
    ASSERT_THAT(Push(*table, {1}), IsOk());
    ASSERT_THAT(Push(*table, {2}), IsOk());
  }
  const std::string log = directory_.LogPath("a/b", 1);
  const std::string bytes = Read(log);
  // The last record: 16 bytes before it, 72, a key and a gradient.
  const size_t last = bytes.size() - (16 + 72 + 8 + 4);
  for (size_t i = 0; i < last; ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    Write(log, damaged);
    const auto table = Recover();
    // A length that reaches beyond the file looks like an incomplete record.
    if (table.ok()) {
      EXPECT_EQ(Row(**table), 0) << i;
      std::filesystem::remove(directory_.LogPath("a/b", 2));
      continue;
    }
    EXPECT_THAT(table, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(log)))
        << i;
  }
  Write(log, bytes);
  {
    const auto table = Recover();
    ASSERT_THAT(table, IsOk());
    ASSERT_THAT(Push(**table, 3), IsOk());
  }
  std::filesystem::remove(log);
  EXPECT_THAT(Recover(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
}

TEST_F(RecoveryTest, APushThatCannotBeLoggedIsNotApplied) {
  {
    const auto table = Create();
    ASSERT_THAT(Push(*table, {1}), IsOk());
    const auto size = std::filesystem::file_size(directory_.LogPath("a/b", 1));
    // The kernel refuses to write beyond this size, as on a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit old_limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    rlimit limit = old_limit;
    limit.rlim_cur = size + 10;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const absl::Status status = Push(*table, {2});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("cannot write the log")));
    EXPECT_EQ(Row(*table), 1);
    EXPECT_EQ(std::filesystem::file_size(directory_.LogPath("a/b", 1)), size);
    // With room again, the same push is applied.
    ASSERT_THAT(Push(*table, {2}), IsOk());
    EXPECT_EQ(Row(*table), 2);
  }
  const auto table = Recover();
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(Row(**table), 2);
}

TEST_F(RecoveryTest, ANewTableReplacesTheFilesOfAnEarlierOne) {
  {
    const auto table = Create();
    ASSERT_THAT(Push(*table, {1}), IsOk());
  }
  {
    const auto table = Create();
    ASSERT_THAT(Push(*table, 1, 5), IsOk());
  }
  const auto table = Recover();
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(Row(**table, 1), 0);
  EXPECT_EQ(Row(**table, 5), 1);
}

}  // namespace
}  // namespace hawser::ps
