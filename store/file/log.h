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
  // Numbers of members that have opened and closed the file, replacing earlier
  // counts: "2 1".
  kCounts = 5,
  // As kSet, for a lease; see Record::lifetime_ms.
  kLease = 6,
};

struct Record {
  RecordKind kind = RecordKind::kSet;
  std::string key = {};
  std::string value = {};
  // Of kLease: the rest of its lifetime when the record was written. 0 for
  // other kinds.
  uint64_t lifetime_ms = 0;
};

// A log of records in one file, to which several processes append.
//
// Format, all numbers little-endian: a header, 36 bytes, of
//   8 bytes "HWSTORE2", uint64 generation, uint64 begin, uint64 end,
//   uint32 CRC-32 of the three numbers
// and records, the first at the offset `begin`, of
//   uint32 CRC-32 of the body, uint32 body_bytes, body
// with the body
//   uint8 kind, uint32 key_bytes, key, value (the rest);
// between the key and the value of a kLease, uint64 lifetime_ms.
// Records extend to `end`; 0 means the end of the file. A record truncated by
// the end of the file counts as never written: readers stop before it and the
// next writer overwrites it.
//
// Compact rewrites the log within the same file, so that locks stay valid. If
// the process dies at any step, the log still has the same meaning:
//   1. The new records are appended. They change nothing for current readers.
//   2. The header makes the log begin at them. (generation + 1)
//   3. They are copied to directly after the header, over old ones.
//   4. The header makes the log begin and end there. (generation + 1)
//   5. The file is truncated there, and the header's `end` is 0 again.
// Members that see a new generation read the log from its beginning.
//
// There are two locks, on bytes far beyond the end, owned by the open file. The
// data lock is held while reading (shared) and writing (exclusive). The member
// lock is held, shared, as long as a member lives. Not thread-safe. Errors of
// the operating system keep their code and name the path.
class FileLog {
 public:
  enum class Lock { kShared, kExclusive };

  // Opens the file, or creates it with mode 0600. kInvalidArgument if it is not
  // a regular file.
  static absl::StatusOr<std::unique_ptr<FileLog>> Open(std::string path);
  // Releases the locks.
  ~FileLog();
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  // Returns false if another member holds the lock.
  absl::StatusOr<bool> TryLockData(Lock lock);
  void UnlockData();

  // Takes the member lock and holds it until destruction. Call under the
  // exclusive data lock, since the member lock is not held for a moment.
  absl::StatusOr<bool> HasOtherMembers();
  absl::Status HoldMemberLock();

  // Whether the path still refers to this file.
  bool IsLinked() const;
  void Unlink();

  // Position of a reader. A different position means that the log has changed.
  struct Position {
    uint64_t generation = 0;
    uint64_t offset = 0;
    bool operator==(const Position&) const = default;
  };
  const Position& position() const { return at_; }

  struct Batch {
    // Whether these are all records of the log, replacing those read before.
    bool from_beginning = false;
    std::vector<Record> records;
  };

  // Whether there is data after the records read so far. Does not need a lock.
  bool HasMore() const;
  // Whether there was already data after the last record when it was read: a
  // record that its writer has not finished. HasMore is meaningless then.
  bool HasLeftOver() const { return has_left_over_; }
  // Returns the records after those read before. Requires the data lock.
  // kInvalidArgument if this is not a log, kDataLoss if it is damaged.
  absl::StatusOr<Batch> ReadMore();

  // Appends a record; bytes left by a failed append are not a record. Requires
  // the exclusive data lock and that all records are read.
  absl::Status Append(const Record& record);
  // Replaces the log by `records`, which must have the same meaning and,
  // counted by BytesOf, no more than CompactedBytesLimit() bytes. Nothing is
  // lost on error. Requires the exclusive data lock and that all records are
  // read.
  absl::Status Compact(const std::vector<Record>& records);
  uint64_t CompactedBytesLimit() const;
  // Empties the log. Requires the exclusive data lock.
  absl::Status Clear();

  // Size of a record in the log.
  static uint64_t BytesOf(RecordKind kind, std::string_view key,
                          std::string_view value);
  // End of the log in bytes.
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
  // Returns nullopt if the file is empty, or if its first writer did not
  // finish.
  absl::StatusOr<std::optional<Header>> ReadHeader() const;
  absl::Status WriteHeader(const Header& header);
  void SetHeader(const Header& header);
  // Reads up to the given size; returns the number of bytes read.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, char* to,
                                size_t max_bytes) const;
  absl::Status WriteAt(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t bytes);
  // Removes bytes that an interrupted writer or compaction left after the log's
  // end.
  absl::Status CutLeftOver();

  const std::string path_;
  const int fd_;
  // Identity of the file; constant after Open.
  dev_t device_ = 0;
  ino_t number_ = 0;
  // Offset of the next record, and the header when that was read; all 0 without
  // a header.
  Position at_;
  Header header_;
  std::string header_bytes_;
  // Whether there may be bytes after that offset which are not a record.
  bool has_left_over_ = false;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_FILE_LOG_H_
