// Disks that fail when a file is synced. This program replaces fsync and
// fdatasync.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace {

std::atomic<bool> disk_fails = false;

int Sync(const char* name, int fd) {
  if (disk_fails) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) { return Sync("fsync", fd); }
extern "C" int fdatasync(int fd) { return Sync("fdatasync", fd); }

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr rpc::Incarnation kClient{7};
constexpr uint64_t kKey = 1;

class FailedSyncTest : public testing::Test {
 protected:
  FailedSyncTest() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(directory_.Open(), IsOk());
    table_ = *LoggedTable::Create(
        *SparseTable::Create(
            {.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}}),
        &directory_, PushLogging::kSync);
  }
  ~FailedSyncTest() override { disk_fails = false; }

  // Adds 1 to the row.
  absl::Status Push(uint64_t sequence) {
    const std::vector<uint64_t> keys = {kKey};
    const std::vector<float> gradients = {-1};
    return table_
        ->Push({{kClient, sequence}, {1}, keys, gradients},
               *table_->table().SplitOrdered(keys))
        .status();
  }

  float Row() {
    float row = -1;
    EXPECT_THAT(table_->table().Pull({&kKey, 1}, {&row, 1}, MissingRows::kKeep),
                IsOk());
    return row;
  }

  std::string SnapshotPath(const std::string& name) const {
    return absl::StrCat(path_, "/", name, ".snapshot");
  }
  absl::StatusOr<TableFileSize> Save(const std::string& name) {
    return table_->Save(
        [&](const SparseTable& rows, int64_t log, std::string& path) {
          path = SnapshotPath(name);
          return WriteTableFile(rows, {.snapshot = 1, .log = log}, path);
        });
  }

  // The server ends, and starts again.
  void Restart() {
    table_.reset();
    auto tables = LoggedTable::Recover(directory_, PushLogging::kSync);
    ASSERT_THAT(tables, IsOk());
    ASSERT_EQ(tables->size(), 1);
    table_ = (*tables)[0];
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/failed_sync");
  const RecoveryDirectory directory_{path_};
  std::shared_ptr<LoggedTable> table_;
};

TEST_F(FailedSyncTest, APushIsNotAcknowledgedAndTheLogRefusesMore) {
  ASSERT_THAT(Push(1), IsOk());
  disk_fails = true;
  EXPECT_THAT(Push(2),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("cannot sync the log"), HasSubstr(path_),
                             HasSubstr("Input/output error"))));
  EXPECT_EQ(Row(), 1);
  // The kernel reports a lost page once: a later success proves nothing.
  disk_fails = false;
  EXPECT_THAT(Push(2), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("save a snapshot")));
  EXPECT_EQ(Row(), 1);
  // A snapshot begins a new log.
  ASSERT_THAT(Save("one"), IsOk());
  EXPECT_THAT(Push(2), IsOk());
  EXPECT_EQ(Row(), 2);
  Restart();
  EXPECT_EQ(Row(), 2);
}

TEST_F(FailedSyncTest, ASnapshotIsNotSavedAndTheOneBeforeIsLoaded) {
  ASSERT_THAT(Push(1), IsOk());
  ASSERT_THAT(Save("one"), IsOk());
  ASSERT_THAT(Push(2), IsOk());
  disk_fails = true;
  EXPECT_THAT(Save("two"), StatusIs(absl::StatusCode::kUnavailable,
                                    AllOf(HasSubstr("sync"), HasSubstr(path_),
                                          HasSubstr("Input/output error"))));
  disk_fails = false;
  EXPECT_FALSE(std::filesystem::exists(SnapshotPath("two")));
  std::vector<std::string> snapshots;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name.find("snapshot") != std::string::npos) snapshots.push_back(name);
  }
  EXPECT_THAT(snapshots, ElementsAre("one.snapshot"));
  // Training goes on, and a later snapshot succeeds.
  EXPECT_THAT(Push(3), IsOk());
  Restart();
  EXPECT_EQ(Row(), 3);
  EXPECT_THAT(Save("two"), IsOk());
}

TEST_F(FailedSyncTest, ASnapshotSucceedsOnceTheDiskWorksAgain) {
  ASSERT_THAT(Push(1), IsOk());
  disk_fails = true;
  EXPECT_THAT(Save("one"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Save("one"), StatusIs(absl::StatusCode::kUnavailable));
  disk_fails = false;
  EXPECT_THAT(Save("one"), IsOk());
  EXPECT_THAT(Push(2), IsOk());
  Restart();
  EXPECT_EQ(Row(), 2);
}

TEST_F(FailedSyncTest, AFileThatCannotBeWrittenIsNamed) {
  disk_fails = true;
  EXPECT_THAT(
      WriteTableFile(table_->table(), {.snapshot = 1}, SnapshotPath("file")),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(SnapshotPath("file"))));
  EXPECT_FALSE(std::filesystem::exists(SnapshotPath("file")));
}

}  // namespace
}  // namespace hawser::ps
