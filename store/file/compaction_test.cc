#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/log.h"
#include "store/file/store.h"
#include "store/testing/temp_file_store.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::store::internal::FileLog;
using ::hawser::store::internal::RecordKind;
using ::testing::HasSubstr;

// A pattern like that of lease renewals.
TEST(FileStoreCompactionTest, ManyChangesOfFewKeysKeepTheLogShort) {
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
  // Members are still counted: two of three have opened the file.
  auto third = MustOpen({.path = dir.File(), .num_members = 3});
  EXPECT_THAT(third->Get("lease/15"), IsOkAndHolds("99999"));
  EXPECT_THAT(FileStore::Open({.path = dir.File(), .num_members = 3}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  writer.reset();
  reader.reset();
  third.reset();
  EXPECT_FALSE(std::filesystem::exists(dir.File()));
}

TEST(FileStoreCompactionTest, WaitersSeeChangesAfterACompaction) {
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

TEST(FileStoreCompactionTest, FullLogIsCompactedIfThatFreesSpace) {
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
                       HasSubstr("its 4 keys use")));
  EXPECT_THAT(MustOpen({.path = dir.File()})->NumKeys(), IsOkAndHolds(4));
}

// Runs `body` in a child process that is killed before its system call number
// `calls`. Returns false if it ended after fewer calls.
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
  // The child stops at the entry and at the exit of each call.
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

TEST(FileStoreCompactionTest, WriterMayDieAtAnyStepOfACompaction) {
  const std::string value(100, 'v');
  int calls = 1;
  bool killed = true;
  for (; killed; ++calls) {
    TempDir dir;
    // Makes the second next change compact the log.
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
    // Existing members and a new one see and change the same data.
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
  // Open, lock, read, and the steps of the compaction.
  EXPECT_GT(calls, 10);
}

TEST(FileStoreCompactionTest, LeasesKeepTheRestOfTheirLifetimes) {
  TempDir dir;
  const auto writer = MustOpen({.path = dir.File()});
  EXPECT_THAT(writer->SetLease("k", "v", absl::Hours(1)), IsOk());
  EXPECT_THAT(writer->WhenChanged({{"k", "v"}}).WaitFor(absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const auto log = FileLog::Open(dir.File());
  ASSERT_THAT(log, IsOk());
  const std::string value(size_t{1} << 16, 'v');
  absl::StatusOr<FileLog::Batch> batch;
  do {
    EXPECT_THAT(writer->Set("other", value), IsOk());
    batch = (*log)->ReadMore();
    ASSERT_THAT(batch, IsOk());
  } while ((*log)->position().generation == 1);
  EXPECT_TRUE(batch->from_beginning);
  const auto lease = std::find_if(
      batch->records.begin(), batch->records.end(),
      [](const auto& record) { return record.kind == RecordKind::kLease; });
  ASSERT_NE(lease, batch->records.end());
  EXPECT_EQ(lease->key, "k");
  EXPECT_EQ(lease->value, "v");
  EXPECT_LE(lease->lifetime_ms, 3'600'000u - 49);
  EXPECT_GE(lease->lifetime_ms, 3'500'000u);
}

TEST(FileStoreCompactionTest, LeasesEndAfterCompactions) {
  TempDir dir;
  const auto writer = MustOpen({.path = dir.File()});
  const auto reader = MustOpen({.path = dir.File()});
  EXPECT_THAT(writer->SetLease("short", "v", absl::Seconds(1)), IsOk());
  EXPECT_THAT(writer->SetLease("long", "v", absl::Hours(1)), IsOk());
  const auto gone = reader->WhenChanged({{"short", std::nullopt}});
  // Compacts again and again until the lease has ended.
  const std::string value(size_t{1} << 16, 'v');
  while (!gone.ready()) EXPECT_THAT(writer->Set("other", value), IsOk());
  EXPECT_THAT(writer->WhenChanged({{"short", std::nullopt}}).Wait(), IsOk());
  EXPECT_THAT(reader->NumKeys(), IsOkAndHolds(2));
  // The log has the rest that the lease had at the last compaction, which a
  // store counts from when it reads it.
  const auto late = MustOpen({.path = dir.File()});
  EXPECT_THAT(late->WhenChanged({{"short", std::nullopt}}).Wait(), IsOk());
  EXPECT_THAT(late->NumKeys(), IsOkAndHolds(2));
}

TEST(FileStoreCompactionTest, RenewalsKeepTheLogShort) {
  TempDir dir;
  const auto writer = MustOpen({.path = dir.File()});
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_THAT(
        writer->SetLease(absl::StrCat("lease/", i % 16), "v", absl::Hours(1)),
        IsOk());
  }
  EXPECT_LE(std::filesystem::file_size(dir.File()), (size_t{1} << 20) + 1024);
  EXPECT_THAT(MustOpen({.path = dir.File()})->NumKeys(), IsOkAndHolds(16));
}

}  // namespace
}  // namespace hawser::store
