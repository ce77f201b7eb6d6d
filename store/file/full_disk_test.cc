// A file store whose disk is full for a while.

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/store.h"
#include "store/testing/temp_file_store.h"

namespace {

// Number of bytes for which the disk has room; negative: any number.
std::atomic<int64_t> room{-1};

}  // namespace

// Replaces the function of the C library. As on a real disk, the write that
// exceeds the room is short, and the next one fails.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t count,
                          off_t offset) {
  const int64_t left = room.load();
  if (left == 0 && count > 0) {
    errno = ENOSPC;
    return -1;
  }
  if (left > 0) count = std::min(count, static_cast<size_t>(left));
  const ssize_t written = syscall(SYS_pwrite64, fd, bytes, count, offset);
  if (left > 0 && written > 0) room.store(left - written);
  return written;
}

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

class FullDiskTest : public testing::Test {
 protected:
  void TearDown() override { room.store(-1); }

  std::unique_ptr<FileStore> Open() { return MustOpen({.path = dir_.File()}); }
  // What all members read, also one that opens the file now.
  void ExpectValue(const std::string& key, const std::string& value) {
    EXPECT_THAT(writer_->Get(key), IsOkAndHolds(value));
    EXPECT_THAT(reader_->Get(key), IsOkAndHolds(value));
    const int64_t left = room.exchange(-1);
    EXPECT_THAT(Open()->Get(key), IsOkAndHolds(value));
    room.store(left);
  }

  TempDir dir_;
  const std::unique_ptr<FileStore> writer_ = Open();
  const std::unique_ptr<FileStore> reader_ = Open();
};

TEST_F(FullDiskTest, ChangeThatDoesNotFitChangesNothing) {
  const std::function<absl::Status()> changes[] = {
      [&] { return writer_->Set("a", "2"); },
      [&] { return writer_->SetLease("a", "2", absl::Seconds(60)); },
      [&] { return writer_->Add("a", 1).status(); },
      [&] { return writer_->Append("a", "2").status(); },
      [&] { return writer_->CompareAndSet("a", "1", "2").status(); },
      [&] { return writer_->Delete("a").status(); },
  };
  for (const auto& change : changes) {
    // Less than any record has.
    for (int64_t left = 0; left < 14; ++left) {
      SCOPED_TRACE(left);
      ASSERT_THAT(writer_->Set("a", "1"), IsOk());
      room.store(left);
      EXPECT_THAT(change(), StatusIs(absl::StatusCode::kResourceExhausted));
      ExpectValue("a", "1");
      room.store(-1);
      // The same change succeeds once there is room again.
      EXPECT_THAT(change(), IsOk());
      ASSERT_THAT(reader_->Set("a", "3"), IsOk());
      ExpectValue("a", "3");
    }
  }
}

// What is left of a long record would follow a shorter one that is written
// next, and could look like a record of its own.
TEST_F(FullDiskTest, BytesOfAChangeThatDoesNotFitAreCut) {
  ASSERT_THAT(writer_->Set("a", "1"), IsOk());
  const uintmax_t size = std::filesystem::file_size(dir_.File());
  room.store(500);
  EXPECT_THAT(writer_->Set("a", std::string(1000, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(std::filesystem::file_size(dir_.File()), size);
  ExpectValue("a", "1");
}

// One change exceeds the size at which the log is compacted. The room ends
// within its record, within the compaction, or later.
TEST_F(FullDiskTest, CompactionThatDoesNotFitLosesNothing) {
  constexpr int64_t kValueBytes = 16 << 10;
  for (int64_t left = 0; left < 5 * kValueBytes; left += 1999) {
    SCOPED_TRACE(left);
    std::string value(kValueBytes, 'x');
    int64_t number = 0;
    const auto change = [&] {
      value.replace(0, 8, std::to_string(10'000'000 + ++number));
      return writer_->Set("a", value);
    };
    do {
      ASSERT_THAT(change(), IsOk());
    } while (std::filesystem::file_size(dir_.File()) <
             (uintmax_t{1} << 20) - kValueBytes);
    const std::string before = value;
    room.store(left);
    const absl::Status status = change();
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
      value = before;
    }
    ExpectValue("a", value);
    room.store(-1);
    ASSERT_THAT(reader_->Set("b", "1"), IsOk());
    ExpectValue("a", value);
    ExpectValue("b", "1");
  }
}

}  // namespace
}  // namespace hawser::store
