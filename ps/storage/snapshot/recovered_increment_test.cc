// Increments of tables whose pushes are logged, across the ends of servers.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/snapshot/snapshot_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/random_pushes.h"
#include "ps/testing/table_content.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kKeys = 200;
constexpr size_t kWidth = 2;

class RecoveredIncrementTest : public testing::Test {
 protected:
  RecoveredIncrementTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(recovery_.Open(), IsOk());
    EXPECT_THAT(disk_.Open("w0"), IsOk());
  }
  ~RecoveredIncrementTest() override { std::filesystem::remove_all(path_); }

  static TableSpec Spec() {
    return {.name = "t",
            .width = kWidth,
            .rule = {"Adagrad", {{"lr", 0.1}}},
            .initializer = Initializer::Uniform(-1, 1)};
  }

  SparseTableOptions Options() {
    return {.num_partitions = 3, .clock = &clock_, .disk = &disk_};
  }

  std::shared_ptr<LoggedTable> Create(const TableSpec& spec) {
    return *LoggedTable::Create(*SparseTable::Create(spec, Options()),
                                &recovery_, PushLogging::kWrite);
  }

  absl::StatusOr<std::shared_ptr<LoggedTable>> Recover() {
    auto tables =
        LoggedTable::Recover(recovery_, PushLogging::kWrite, Options());
    if (!tables.ok()) return tables.status();
    EXPECT_EQ(tables->size(), 1u);
    return (*tables)[0];
  }

  static absl::Status Push(LoggedTable& table, const RandomPush& push) {
    return table.Push(push.push(), *table.table().SplitOrdered(push.keys))
        .status();
  }

  // `end` says whether the server ends after the file was written.
  absl::Status Save(LoggedTable& table, const std::string& name,
                    const std::string& base, bool end = false) {
    TableFileOptions options{.snapshot = ++last_id_};
    if (!base.empty()) {
      const auto found = snapshots_.BaseOf(table.table(), base);
      if (!found.ok()) return found.status();
      options.base = *found;
    }
    return table
        .Save([&](const SparseTable& rows, int64_t log,
                  std::string& path) -> absl::StatusOr<TableFileSize> {
          options.log = log;
          auto size = snapshots_.Save(rows, name, options, path);
          if (end) return absl::CancelledError("the server ends");
          return size;
        })
        .status();
  }

  // What survives the end of a server: all but when rows were considered for
  // eviction, and the pushes of other incarnations.
  static std::map<uint64_t, std::string> RowsOf(const SparseTable& table) {
    TableContent content = ContentOf(table);
    const RowLayout& layout = table.format().layout();
    for (auto& [key, row] : content.rows) {
      if (!table.spec().retention.active()) continue;
      auto* const bytes = reinterpret_cast<std::byte*>(row.data());
      layout.set_use(bytes, layout.use(bytes).WithPushes(0));
    }
    return content.rows;
  }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/recovered_increment");
  const RecoveryDirectory recovery_{path_ + "/log"};
  const SnapshotDirectory snapshots_{path_ + "/snapshots"};
  RocksDbStorage disk_{path_ + "/disk"};
  async::SimulatedClock clock_;
  uint64_t last_id_ = 0;
};

// The server ends at any time, also between the file of a snapshot and its use
// for the recovery. Afterwards increments go on.
TEST_F(RecoveredIncrementTest, RowsAndIncrementsSurviveTheEndsOfServers) {
  for (int variant = 0; variant < 8; ++variant) {
    TableSpec spec = Spec();
    if (variant % 2 == 1) {
      spec.retention = {
          .admission_pushes = 2, .ttl = absl::Seconds(30), .max_rows = 80};
    }
    if (variant / 2 % 2 == 1) spec.storage = TableStorage::RocksDb(25);
    if (variant >= 4) {
      // Rates depend on the keys of rows and the number of their updates.
      spec.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.9});
      KeyRange range{.first = 10, .last = 90};
      range.rule = optim::RuleSpec{"Adagrad", {{"eps", 0.5}}};
      range.initializer = Initializer::Constant(3);
      spec.key_ranges = {range};
    }
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::filesystem::remove_all(path_ + "/log");
      ASSERT_THAT(recovery_.Open(), IsOk());
      std::filesystem::remove_all(path_ + "/snapshots");
      RandomPushes pushes(seed, kKeys, kWidth);
      auto& random = pushes.random();
      std::shared_ptr<LoggedTable> table = Create(spec);
      std::string last;
      int increments_after_restart = 0;
      for (int round = 0; round < 30; ++round) {
        const std::string where = absl::StrCat("variant ", variant, ", seed ",
                                               seed, ", round ", round);
        for (uint64_t i = 1 + random() % 5; i > 0; --i) {
          clock_.AdvanceBy(absl::Seconds(random() % 2));
          ASSERT_THAT(Push(*table, pushes.Next()), IsOk());
        }
        const std::string name = absl::StrCat("s", round);
        const bool full = last.empty() || random() % 6 == 0;
        const bool ends = random() % 4 == 0;
        const absl::Status saved = Save(*table, name, full ? "" : last, ends);
        if (ends) {
          ASSERT_THAT(saved, StatusIs(absl::StatusCode::kCancelled)) << where;
        } else {
          ASSERT_THAT(saved, IsOk()) << where;
          last = name;
          increments_after_restart += full ? 0 : 1;
          const auto restored = snapshots_.Restore("t", name, {}, Options());
          ASSERT_THAT(restored, IsOk()) << where;
          ASSERT_EQ(ContentOf(**restored), ContentOf(table->table())) << where;
        }
        if (!ends && random() % 2 == 0) continue;
        // The time of the last push that is logged is that of the table.
        ASSERT_THAT(Push(*table, pushes.Next()), IsOk());
        const auto before = RowsOf(table->table());
        table.reset();
        clock_.AdvanceBy(absl::Seconds(random() % 100));
        auto recovered = Recover();
        ASSERT_THAT(recovered, IsOk()) << where;
        table = *std::move(recovered);
        ASSERT_EQ(RowsOf(table->table()), before) << where;
      }
      EXPECT_GT(increments_after_restart, 3);
    }
  }
}

class RecoveryFilesTest : public RecoveredIncrementTest {
 protected:
  void PushAndSave(const std::string& name, const std::string& base) {
    ASSERT_THAT(Push(*table_, pushes_.Next()), IsOk());
    ASSERT_THAT(Save(*table_, name, base), IsOk());
  }
  RecoveryDirectory::Numbers Files() { return recovery_.List()->at("t"); }

  RandomPushes pushes_{1, kKeys, kWidth};
  std::shared_ptr<LoggedTable> table_ = Create(Spec());
};

TEST_F(RecoveryFilesTest, TheChainsOfTheLastTwoSnapshotsAreKept) {
  PushAndSave("a", "");
  PushAndSave("b", "a");
  PushAndSave("c", "b");
  EXPECT_THAT(Files().rows, ElementsAre(2, 3, 4));
  EXPECT_THAT(Files().logs, ElementsAre(3, 4));
  // On an earlier base.
  PushAndSave("d", "a");
  EXPECT_THAT(Files().rows, ElementsAre(2, 3, 4, 5));
  PushAndSave("e", "d");
  EXPECT_THAT(Files().rows, ElementsAre(2, 5, 6));
  EXPECT_THAT(Files().logs, ElementsAre(5, 6));
  PushAndSave("f", "");
  EXPECT_THAT(Files().rows, ElementsAre(2, 5, 6, 7));
  PushAndSave("g", "f");
  EXPECT_THAT(Files().rows, ElementsAre(7, 8));
  // The recovery needs no snapshot directory.
  std::filesystem::remove_all(path_ + "/snapshots");
  ASSERT_THAT(Push(*table_, pushes_.Next()), IsOk());
  const auto before = RowsOf(table_->table());
  table_.reset();
  EXPECT_EQ(RowsOf((*Recover())->table()), before);
}

// Its base is not kept for the recovery any more: logs go on instead.
TEST_F(RecoveryFilesTest, AnIncrementOfAFileThatIsGoneIsNotUsed) {
  PushAndSave("a", "");
  PushAndSave("b", "a");
  PushAndSave("c", "");
  PushAndSave("d", "c");
  EXPECT_THAT(Files().rows, ElementsAre(4, 5));
  PushAndSave("e", "b");
  EXPECT_THAT(Files().rows, ElementsAre(4, 5));
  EXPECT_THAT(Files().logs, ElementsAre(4, 5, 6));
  PushAndSave("f", "e");
  const auto before = RowsOf(table_->table());
  EXPECT_EQ(RowsOf(**snapshots_.Restore("t", "f", {}, Options())), before);
  table_.reset();
  EXPECT_EQ(RowsOf((*Recover())->table()), before);
}

TEST_F(RecoveryFilesTest, ADamagedIncrementIsReplacedByTheSnapshotBefore) {
  PushAndSave("a", "");
  PushAndSave("b", "a");
  PushAndSave("c", "b");
  ASSERT_THAT(Push(*table_, pushes_.Next()), IsOk());
  const auto before = RowsOf(table_->table());
  table_.reset();
  const auto cut = [&](int64_t number) {
    const std::string path = recovery_.RowsPath("t", number);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  };
  cut(4);
  EXPECT_EQ(RowsOf((*Recover())->table()), before);
  // A link of both chains.
  cut(2);
  EXPECT_THAT(Recover(), StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr(recovery_.RowsPath("t", 2))));
  std::filesystem::remove(recovery_.RowsPath("t", 2));
  EXPECT_THAT(Recover(), StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr("whose file is missing")));
}

TEST_F(RecoveryFilesTest, ARecoveredTableKnowsTheSnapshotsOfItsChain) {
  PushAndSave("a", "");
  PushAndSave("b", "a");
  ASSERT_THAT(Push(*table_, pushes_.Next()), IsOk());
  table_.reset();
  table_ = *Recover();
  for (const std::string base : {"a", "b"}) {
    ASSERT_THAT(Save(*table_, "on-" + base, base), IsOk());
    EXPECT_EQ(RowsOf(**snapshots_.Restore("t", "on-" + base, {}, Options())),
              RowsOf(table_->table()));
  }
}

}  // namespace
}  // namespace hawser::ps
