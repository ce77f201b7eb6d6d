#ifndef HAWSER_STORE_INTERNAL_FILE_LOG_H_
#define HAWSER_STORE_INTERNAL_FILE_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
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
};

struct Record {
  RecordKind kind = RecordKind::kSet;
  std::string key;
  std::string value;
};

// A log of records in one file that several processes append to.
//
// Format, all numbers little-endian: 8 bytes "HWSTORE1", then records of
//   uint32 CRC-32 of the body, uint32 body_bytes, body
// with the body
//   uint8 kind, uint32 key_bytes, key, value (the rest).
// A record that the end of the file cuts short was never written: readers stop
// before it and the next writer replaces it.
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

  // Whether there is something behind what was read. Needs no lock.
  bool HasMore() const;
  // The records behind those read before. Needs the data lock.
  // kInvalidArgument if this is no log, kDataLoss if it is damaged.
  absl::StatusOr<std::vector<Record>> ReadMore();

  // Appends; nothing is written on error. Needs the exclusive data lock, with
  // everything read.
  absl::Status Append(const Record& record);
  // Empties the log. Needs the exclusive data lock.
  absl::Status Clear();

  // Bytes read and appended so far.
  uint64_t log_bytes() const { return end_; }

 private:
  FileLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status SystemError(const char* what) const;
  absl::Status DamageError(uint64_t offset) const;
  absl::StatusOr<bool> TryLock(int64_t offset, short type);
  absl::StatusOr<uint64_t> FileBytes() const;
  absl::StatusOr<std::string> ReadFrom(uint64_t offset) const;
  absl::Status Write(const std::string& bytes);

  const std::string path_;
  const int fd_;
  // Where the next record begins; 0 before the first 8 bytes.
  uint64_t end_ = 0;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_INTERNAL_FILE_LOG_H_
