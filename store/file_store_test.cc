#include "store/file_store.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/conformance.h"
#include "store/internal/file_log.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::store::internal::FileLog;
using ::hawser::store::internal::RecordKind;
using ::testing::HasSubstr;

// A folder that goes away with it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "/file_store_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::string File() const { return path_ + "/store"; }

 private:
  std::string path_;
};

std::unique_ptr<FileStore> MustOpen(FileStoreOptions options) {
  absl::StatusOr<std::unique_ptr<FileStore>> store =
      FileStore::Open(std::move(options));
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

// The log of a member that crashed after it had set "old".
void LeaveCrashedRun(const std::string& path) {
  const auto log = FileLog::Open(path);
  ASSERT_THAT(log, IsOk());
  EXPECT_THAT((*log)->TryLockData(FileLog::Lock::kExclusive),
              IsOkAndHolds(true));
  EXPECT_THAT((*log)->Append({RecordKind::kJoin, "", ""}), IsOk());
  EXPECT_THAT((*log)->Append({RecordKind::kSet, "old", "1"}), IsOk());
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

TEST(FileStoreTest, LastOfTheMembersDeletesTheFile) {
  TempDir dir;
  const FileStoreOptions options = {.path = dir.File(), .num_members = 2};
  auto first = MustOpen(options);
  EXPECT_THAT(first->Set("k", "v"), IsOk());
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(dir.File()));
  // The first one finished in order: its data is for the second.
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

TEST(FileStoreTest, OneMemberTooManyIsRefused) {
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
  // 100 bytes announced, 80 there: more than the record that replaces them.
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

// A member that died while it wrote keeps no processor of others busy.
TEST(FileStoreTest, AwaitingAKeyBehindACutRecordSleeps) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  EXPECT_THAT(store->Set("a", "1"), IsOk());
  AppendBytes(dir.File(), "\7");
  rusage before{};
  rusage after{};
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &before), 0);
  EXPECT_THAT(store->Get("b", absl::Milliseconds(500)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &after), 0);
  EXPECT_GE(after.ru_nvcsw - before.ru_nvcsw, 5);
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
  // Nobody is left whose data it could be.
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

TEST(FileStoreTest, OtherFilesAreRefusedAndLeftAlone) {
  TempDir dir;
  AppendBytes(dir.File(), "my thesis, all of it");
  EXPECT_THAT(FileStore::Open({.path = dir.File()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a store's file")));
  EXPECT_EQ(std::filesystem::file_size(dir.File()), 20u);
}

TEST(FileStoreTest, WhatTheSystemRefusesNamesThePath) {
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

// As leases are renewed.
TEST(FileStoreTest, ManyChangesOfFewKeysKeepTheLogShort) {
  TempDir dir;
  auto writer = MustOpen({.path = dir.File(), .num_members = 3});
  auto reader = MustOpen({.path = dir.File(), .num_members = 3});
  EXPECT_THAT(reader->Set("other", "kept"), IsOk());
  EXPECT_THAT(writer->Set("gone", "soon"), IsOk());
  EXPECT_THAT(writer->Delete("gone"), IsOkAndHolds(true));
  uintmax_t longest = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_THAT(writer->Set(absl::StrCat("lease/", i % 16), absl::StrCat(i)),
                IsOk());
    longest = std::max(longest, std::filesystem::file_size(dir.File()));
    if (i % 10'000 == 0) {
      EXPECT_THAT(reader->Get(absl::StrCat("lease/", i % 16)),
                  IsOkAndHolds(absl::StrCat(i)));
    }
  }
  EXPECT_LE(longest, (size_t{1} << 20) + 1024);
  EXPECT_THAT(reader->NumKeys(), IsOkAndHolds(17));
  EXPECT_THAT(reader->Get("other"), IsOkAndHolds("kept"));
  EXPECT_THAT(reader->Get("lease/15"), IsOkAndHolds("99999"));
  EXPECT_THAT(writer->Get("lease/14"), IsOkAndHolds("99998"));
  // Members are still counted: two of three have come.
  auto third = MustOpen({.path = dir.File(), .num_members = 3});
  EXPECT_THAT(third->Get("lease/15"), IsOkAndHolds("99999"));
  EXPECT_THAT(FileStore::Open({.path = dir.File(), .num_members = 3}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  writer.reset();
  reader.reset();
  third.reset();
  EXPECT_FALSE(std::filesystem::exists(dir.File()));
}

TEST(FileStoreTest, WhoWaitsNoticesChangesBehindACompaction) {
  TempDir dir;
  auto writer = MustOpen({.path = dir.File()});
  auto reader = MustOpen({.path = dir.File()});
  std::thread waiter(
      [&] { EXPECT_THAT(reader->Get("end"), IsOkAndHolds("")); });
  const std::string value(1000, 'v');
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_THAT(writer->Set("k", value), IsOk());
  }
  EXPECT_THAT(writer->Set("end", ""), IsOk());
  waiter.join();
}

TEST(FileStoreTest, AFullLogIsCompactedWhereThatMakesRoom) {
  TempDir dir;
  auto store =
      MustOpen({.path = dir.File(), .limits = {.max_total_bytes = 1000}});
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(store->Set("k", std::string(150, 'x')), IsOk()) << i;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(store->Set(absl::StrCat("more", i), std::string(150, 'x')),
                IsOk());
  }
  EXPECT_THAT(store->Set("much", std::string(500, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("its 4 keys take")));
  EXPECT_THAT(MustOpen({.path = dir.File()})->NumKeys(), IsOkAndHolds(4));
}

// Runs `body` in a child process that is killed before its system call number
// `calls`. False if it made fewer, and ended by itself.
template <class Body>
bool IsKilledBeforeCall(int calls, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  // Stops at the beginning and at the end of each.
  for (int i = 0; i < 2 * calls - 1 && WIFSTOPPED(status); ++i) {
    EXPECT_EQ(ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
  }
  if (!WIFSTOPPED(status)) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return false;
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return true;
}

TEST(FileStoreTest, AWriterMayDieAtAnyMomentOfACompaction) {
  const std::string value(100, 'v');
  int calls = 1;
  bool killed = true;
  for (; killed; ++calls) {
    TempDir dir;
    // Lets the next change but one compact the log.
    const FileStoreOptions options = {.path = dir.File(),
                                      .limits = {.max_total_bytes = 1000}};
    auto early = MustOpen(options);
    EXPECT_THAT(early->Set("a", "1"), IsOk());
    for (int i = 0; i < 6; ++i) EXPECT_THAT(early->Set("b", value), IsOk());
    auto late = MustOpen(options);
    killed = IsKilledBeforeCall(calls, [&] {
      auto log = FileLog::Open(dir.File());
      if (!log.ok() || !(*log)->TryLockData(FileLog::Lock::kExclusive).ok() ||
          !(*log)->ReadMore().ok() ||
          !(*log)
               ->Compact({{RecordKind::kCounts, "", "2 0"},
                          {RecordKind::kSet, "a", "1"},
                          {RecordKind::kSet, "b", value}})
               .ok()) {
        _exit(1);
      }
    });
    // Those that were there, and one that comes, see and change the same.
    auto newcomer = MustOpen(options);
    for (const auto& store : {early.get(), late.get(), newcomer.get()}) {
      EXPECT_THAT(store->NumKeys(), IsOkAndHolds(2)) << calls;
      EXPECT_THAT(store->Get("a"), IsOkAndHolds("1")) << calls;
      EXPECT_THAT(store->Get("b"), IsOkAndHolds(value)) << calls;
    }
    EXPECT_THAT(late->Set("c", "3"), IsOk()) << calls;
    EXPECT_THAT(early->Get("c"), IsOkAndHolds("3")) << calls;
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(early->Set("b", value), IsOk()) << calls;
    }
    EXPECT_THAT(newcomer->Set("d", "4"), IsOk()) << calls;
    for (const auto& store : {early.get(), late.get(), newcomer.get()}) {
      EXPECT_THAT(store->NumKeys(), IsOkAndHolds(4)) << calls;
    }
    EXPECT_THAT(MustOpen(options)->Get("b"), IsOkAndHolds(value)) << calls;
  }
  // Opening, locking, reading, and the steps.
  EXPECT_GT(calls, 10);
}

TEST(FileStoreTest, FileIsForItsUserAlone) {
  TempDir dir;
  auto store = MustOpen({.path = dir.File()});
  struct stat file;
  ASSERT_EQ(stat(dir.File().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace hawser::store
