#ifndef HAWSER_STORE_FILE_LOG_H_
#define HAWSER_STORE_FILE_LOG_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::store::internal {

enum class RecordKind : uint8_t {
  kSet = 1,
  kDelete = 2,
  // A member opened the file.
  kJoin = 3,
  // A member closed it.
  kFinish = 4,
  // How many members opened the file and closed it so far, in place of what
  // was counted before: "2 1".
  kCounts = 5,
};

struct Record {
  RecordKind kind = RecordKind::kSet;
  std::string key;
  std::string value;
};

// A log of records in one file that several processes append to.
//
// Format, all numbers little-endian: a header, 36 bytes, of
//   8 bytes "HWSTORE2", uint64 generation, uint64 begin, uint64 end,
//   uint32 CRC-32 of the three numbers
// and records, the first at the offset `begin`, of
//   uint32 CRC-32 of the body, uint32 body_bytes, body
// with the body
//   uint8 kind, uint32 key_bytes, key, value (the rest).
// They reach to `end`; 0 is the end of the file. A record that the end of the
// file cuts short was never written: readers stop before it and the next writer
// replaces it.
//
// Compact puts what the log says in place of the log, within the file, so that
// locks stay with it. A process that ends at any moment of it leaves a log that
// says the same:
//   1. The new records are appended. They change nothing for who reads on.
//   2. The header lets the log begin at them.        (generation + 1)
//   3. They are copied to right behind the header, over old ones.
//   4. The header lets the log begin, and end, there. (generation + 1)
//   5. The file is cut there, and the header's `end` is 0 again.
// Members that see another generation read from its beginning.
//
// Two locks, on bytes far behind the end, belong to the open file: the data
// lock stands around reading (shared) and writing (exclusive), the member lock
// is held, shared, as long as a member lives. Not thread-safe. Errors of the
// operating system keep their code and name the path.
class FileLog {
 public:
  enum class Lock { kShared, kExclusive };

  // Opens or creates the file, of mode 0600; kInvalidArgument if it is not a
  // regular file.
  static absl::StatusOr<std::unique_ptr<FileLog>> Open(std::string path);
  // Releases the locks.
  ~FileLog();
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  // False if another member holds the lock.
  absl::StatusOr<bool> TryLockData(Lock lock);
  void UnlockData();

  // Takes the member lock, held until the end. Under the exclusive data lock,
  // since for a moment it is not there.
  absl::StatusOr<bool> HasOtherMembers();
  absl::Status HoldMemberLock();

  // Whether the path still leads to this file.
  bool IsLinked() const;
  void Unlink();

  // Where a reader is. Another one means that there was a change.
  struct Position {
    uint64_t generation = 0;
    uint64_t offset = 0;
    bool operator==(const Position&) const = default;
  };
  const Position& position() const { return at_; }

  struct Batch {
    // Whether they are all records of the log, in place of those read before.
    bool from_beginning = false;
    std::vector<Record> records;
  };

  // Whether there is something behind what was read. Needs no lock.
  bool HasMore() const;
  // Whether something was there already when that was read: a record that its
  // writer left unfinished, or has not finished yet. HasMore tells nothing
  // then.
  bool HasLeftOver() const { return has_left_over_; }
  // The records behind those read before. Needs the data lock.
  // kInvalidArgument if this is no log, kDataLoss if it is damaged.
  absl::StatusOr<Batch> ReadMore();

  // Appends; what an error leaves is no record. Needs the exclusive data lock,
  // with everything read.
  absl::Status Append(const Record& record);
  // Puts `records`, which say the same as the log, in its place. They must take
  // no more than CompactedBytesLimit(), of which they are counted by BytesOf.
  // Nothing is lost on error. Needs the exclusive data lock, with everything
  // read.
  absl::Status Compact(const std::vector<Record>& records);
  uint64_t CompactedBytesLimit() const;
  // Empties the log. Needs the exclusive data lock.
  absl::Status Clear();

  // What a record takes of the log.
  static uint64_t BytesOf(std::string_view key, std::string_view value);
  // Where the log ends.
  uint64_t log_bytes() const { return at_.offset; }

 private:
  struct Header {
    uint64_t generation = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  FileLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status SystemError(const char* what) const;
  absl::Status DamageError(uint64_t offset) const;
  absl::StatusOr<bool> TryLock(int64_t offset, short type);
  absl::StatusOr<uint64_t> FileBytes() const;
  // Nothing in a file that is empty, or whose first writer did not finish.
  absl::StatusOr<std::optional<Header>> ReadHeader() const;
  absl::Status WriteHeader(const Header& header);
  void SetHeader(const Header& header);
  // How many of the bytes there are.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, char* to,
                                size_t max_bytes) const;
  absl::Status WriteAt(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t bytes);
  // Removes what an interrupted writer, or a compaction, left behind the log's
  // end.
  absl::Status CutLeftOver();

  const std::string path_;
  const int fd_;
  // Which file it is: constant after Open.
  dev_t device_ = 0;
  ino_t number_ = 0;
  // Where the next record begins, and the header as it was when that was read;
  // all 0 before there is one.
  Position at_;
  Header header_;
  std::string header_bytes_;
  // Whether there may be something behind that which is no record.
  bool has_left_over_ = false;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_FILE_LOG_H_
