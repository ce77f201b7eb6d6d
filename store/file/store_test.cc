#include "store/file/store.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/log.h"
#include "store/testing/conformance.h"
#include "store/testing/temp_file_store.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::store::internal::FileLog;
using ::hawser::store::internal::RecordKind;
using ::testing::HasSubstr;

// Writes the log of a member that crashed after it had set "old".
void LeaveCrashedRun(const std::string& path) {
  const auto log = FileLog::Open(path);
  ASSERT_THAT(log, IsOk());
  EXPECT_THAT((*log)->TryLockData(FileLog::Lock::kExclusive),
              IsOkAndHolds(true));
  EXPECT_THAT((*log)->Append({RecordKind::kJoin, "", ""}), IsOk());
  EXPECT_THAT((*log)->Append({RecordKind::kSet, "old", "1"}), IsOk());
}

// CPU time used by this thread.
absl::Duration ProcessorTime() {
  timespec used{};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  return absl::DurationFromTimespec(used);
}

void AppendBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

class FileUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return MustOpen({.path = dir_.File()});
  }

 private:
  const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(File, StoreConformanceTest,
                         testing::Values(ConformanceParam{
                             "File", [] {
                               return std::make_unique<FileUnderTest>();
                             }}));

TEST(FileStoreTest, DestructionEndsWatches) {
  TempDir dir;
  ExpectDestructionEndsWatches(MustOpen({.path = dir.File()}));
}

TEST(FileStoreTest, WatchOfADeletedFileFails) {
  TempDir dir;
  const auto store = MustOpen({.path = dir.File()});
  EXPECT_THAT(store->SetLease("k", "v", absl::Milliseconds(100)), IsOk());
  const auto watch = store->WhenChanged({{"k", "v"}});
  std::filesystem::remove(dir.File());
  EXPECT_THAT(watch.Wait(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(FileStoreTest, LeaseComesBackFromTheLog) {
  TempDir dir;
  const auto log = FileLog::Open(dir.File());
  ASSERT_THAT(log, IsOk());
  const std::string value("\0v", 2);
  EXPECT_THAT((*log)->Append({.kind = RecordKind::kLease,
                              .key = "k",
                              .value = value,
                              .lifetime_ms = uint64_t{1} << 40}),
              IsOk());
  EXPECT_EQ((*log)->log_bytes(),
            36 + FileLog::BytesOf(RecordKind::kLease, "k", value));
  const auto reader = FileLog::Open(dir.File());
  ASSERT_THAT(reader, IsOk());
  const auto batch = (*reader)->ReadMore();
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->records.size(), 1u);
  EXPECT_EQ(batch->records[0].kind, RecordKind::kLease);
  EXPECT_EQ(batch->records[0].key, "k");
  EXPECT_EQ(batch->records[0].value, value);
  EXPECT_EQ(batch->records[0].lifetime_ms, uint64_t{1} << 40);
}

TEST(FileStoreTest, LastOfTheMembersDeletesTheFile) {
  TempDir dir;
  const FileStoreOptions options = {.path = dir.File(), .num_members = 2};
  auto first = MustOpen(options);
  EXPECT_THAT(first->Set("k", "v"), IsOk());
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(dir.File()));
  // The first one closed normally, so its data is kept for the second.
  auto second = MustOpen(options);
  EXPECT_THAT(second->Get("k"), IsOkAndHolds("v"));
  second.reset();
  EXPECT_FALSE(std::filesystem::exists(dir.File()));
}

TEST(FileStoreTest, UnknownNumberOfMembersKeepsTheFile) {
  TempDir dir;
  EXPECT_THAT(MustOpen({.path = dir.File()})->Set("k", "v"), IsOk());
  EXPECT_THAT(MustOpen({.path = dir.File()})->Get("k"), IsOkAndHolds("v"));
}

TEST(FileStoreTest, ExcessMemberIsRejected) {
  TempDir dir;
  const FileStoreOptions options = {.path = dir.File(), .num_members = 1};
  auto member = MustOpen(options);
  EXPECT_THAT(FileStore::Open(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("all 1 members")));
  EXPECT_THAT(member->Set("k", "v"), IsOk());
}

TEST(FileStoreTest, FileOfACrashedRunStartsEmpty) {
  TempDir dir;
  LeaveCrashedRun(dir.File());
  auto store = MustOpen({.path = dir.File(), .num_members = 1});
  EXPECT_THAT(store->NumKeys(), IsOkAndHolds(0));
  EXPECT_THAT(store->Get("old", absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(FileStoreTest, CrashOfOneMemberKeepsTheDataOfThoseAlive) {
  TempDir dir;
  auto alive = MustOpen({.path = dir.File()});
  LeaveCrashedRun(dir.File() + ".other");
  {
    const auto log = FileLog::Open(dir.File());
    ASSERT_THAT(log, IsOk());
    EXPECT_THAT((*log)->TryLockData(FileLog::Lock::kExclusive),
                IsOkAndHolds(true));
    EXPECT_THAT((*log)->ReadMore(), IsOk());
    EXPECT_THAT((*log)->Append({RecordKind::kJoin, "", ""}), IsOk());
    EXPECT_THAT((*log)->Append({RecordKind::kSet, "k", "v"}), IsOk());
  }
  EXPECT_THAT(alive->Get("k"), IsOkAndHolds("v"));
  EXPECT_THAT(MustOpen({.path = dir.File()})->Get("k"), IsOkAndHolds("v"));
}

TEST(FileStoreTest, UnfinishedRecordIsIgnoredAndReplaced) {
  TempDir dir;
  auto first = MustOpen({.path = dir.File()});
  auto second = MustOpen({.path = dir.File()});
  EXPECT_THAT(first->Set("a", "1"), IsOk());
  // The header announces 100 bytes and 80 follow: more than the record that
  // replaces them.
  AppendBytes(dir.File(),
              std::string("\1\2\3\4\x64\0\0\0", 8) + std::string(80, '\xff'));
  EXPECT_THAT(second->Get("a"), IsOkAndHolds("1"));
  EXPECT_THAT(second->Set("b", "2"), IsOk());
  AppendBytes(dir.File(), "\7");
  EXPECT_THAT(first->Get("b"), IsOkAndHolds("2"));
  EXPECT_THAT(first->Set("c", "3"), IsOk());
  EXPECT_THAT(second->Get("c"), IsOkAndHolds("3"));
  EXPECT_THAT(MustOpen({.path = dir.File()})->NumKeys(), IsOkAndHolds(3));
}

// A record left unfinished by a dead member must not make others spin.
TEST(FileStoreTest, AwaitingAKeyBehindACutRecordSleeps) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  EXPECT_THAT(store->Set("a", "1"), IsOk());
  AppendBytes(dir.File(), "\7");
  const absl::Duration before = ProcessorTime();
  EXPECT_THAT(store->Get("b", absl::Milliseconds(500)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_LT(ProcessorTime() - before, absl::Milliseconds(50));
  std::thread other([&] {
    EXPECT_THAT(MustOpen({.path = dir.File()})->Set("b", "2"), IsOk());
  });
  EXPECT_THAT(store->Get("b"), IsOkAndHolds("2"));
  other.join();
}

TEST(FileStoreTest, DamagedRecordIsDataLoss) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  AppendBytes(dir.File(), std::string("\1\2\3\4\5\0\0\0abcde", 13));
  EXPECT_THAT(store->Get("k"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(dir.File())));
  EXPECT_THAT(store->Set("k", "v"), StatusIs(absl::StatusCode::kDataLoss));
  store.reset();
  // No member is left, so the file starts empty.
  EXPECT_THAT(MustOpen({.path = dir.File()})->NumKeys(), IsOkAndHolds(0));
}

TEST(FileStoreTest, HugeRecordIsDataLoss) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  AppendBytes(dir.File(), std::string(8, '\xff'));
  EXPECT_THAT(store->Get("k"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(FileStoreTest, CutMagicStartsEmpty) {
  TempDir dir;
  AppendBytes(dir.File(), "HWST");
  auto store = MustOpen({.path = dir.File()});
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  EXPECT_THAT(MustOpen({.path = dir.File()})->Get("k"), IsOkAndHolds("v"));
}

TEST(FileStoreTest, OtherFilesAreRejectedAndUnchanged) {
  TempDir dir;
  AppendBytes(dir.File(), "my thesis, all of it");
  EXPECT_THAT(FileStore::Open({.path = dir.File()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not the file of a store")));
  EXPECT_EQ(std::filesystem::file_size(dir.File()), 20u);
}

TEST(FileStoreTest, SystemErrorsNameThePath) {
  TempDir dir;
  const std::string path = dir.File() + "/none/store";
  EXPECT_THAT(FileStore::Open({.path = path}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  ASSERT_EQ(mkfifo(dir.File().c_str(), 0600), 0);
  EXPECT_THAT(FileStore::Open({.path = dir.File()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
  EXPECT_THAT(FileStore::Open({.path = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      FileStore::Open({.path = dir.File(), .timeout = absl::Seconds(-1)}),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FileStoreTest, DeletedFileIsNoticed) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  std::filesystem::remove(dir.File());
  EXPECT_THAT(
      store->Set("k", "v"),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("deleted")));
}

TEST(FileStoreTest, LockHeldTooLongTimesOut) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  const auto log = FileLog::Open(dir.File());
  ASSERT_THAT(log, IsOk());
  ASSERT_THAT((*log)->TryLockData(FileLog::Lock::kExclusive),
              IsOkAndHolds(true));
  EXPECT_THAT(store->SetTimeout(absl::Milliseconds(30)), IsOk());
  const auto timed_out = StatusIs(absl::StatusCode::kDeadlineExceeded,
                                  HasSubstr("keeps the file locked"));
  EXPECT_THAT(store->Set("k", "v"), timed_out);
  EXPECT_THAT(
      FileStore::Open({.path = dir.File(), .timeout = absl::Milliseconds(30)}),
      timed_out);
  (*log)->UnlockData();
  EXPECT_THAT(store->Set("k", "v"), IsOk());
}

TEST(FileStoreTest, FullLogIsRefused) {
  TempDir dir;
  auto store =
      MustOpen({.path = dir.File(), .limits = {.max_total_bytes = 250}});
  EXPECT_THAT(store->Set("k", std::string(150, 'x')), IsOk());
  EXPECT_THAT(store->Set("k", std::string(150, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(FileStoreTest, FileIsPrivateToItsUser) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  struct stat file;
  ASSERT_EQ(stat(dir.File().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace hawser::store
