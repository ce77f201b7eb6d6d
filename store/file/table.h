// The keys and values of a file that several processes share.

#ifndef HAWSER_STORE_FILE_TABLE_H_
#define HAWSER_STORE_FILE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/blocking_region.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "store/file/log.h"

namespace hawser::store::internal {

// A log (FileLog), what this process has read of it, and its part as one of the
// file's members. Reads what others wrote before each look and each change;
// compacts the log where it is long or full. Errors as FileStore gives them.
//
// Thread-safe. Calls that wait for the file's lock do so inside an
// async::BlockingRegion.
class FileTable {
 public:
  struct Options {
    std::string path;
    // How many members open the file in all; 0: not known.
    int num_members = 0;
    // Of the log.
    uint64_t max_bytes = 0;
  };

  explicit FileTable(Options options) : options_(std::move(options)) {}

  // True once this object is a member; false if that took too long.
  absl::StatusOr<bool> Join(async::MonotonicTime deadline);
  // Counts the member as finished; deletes the file after the last one.
  void Finish();

  // Runs `body` under the data lock, everything read. False if the lock was
  // not to be had by the deadline.
  template <class Body>
  absl::StatusOr<bool> WithLock(FileLog::Lock lock,
                                async::MonotonicTime deadline, Body body) {
    async::BlockingRegion region;
    async::MutexLock mutex_lock(&mutex_);
    ASSIGN_OR_RETURN(const bool locked, LockLocked(lock, deadline));
    if (!locked) return false;
    absl::Status status = CatchUpLocked();
    if (status.ok()) status = body();
    if (status.ok() && lock == FileLog::Lock::kExclusive) CompactIfLongLocked();
    log_->UnlockData();
    if (lock == FileLog::Lock::kExclusive) changed_.NotifyAll();
    RETURN_IF_ERROR(status);
    return true;
  }

  // Null if absent. Valid inside WithLock.
  const std::string* Find(const std::string& key) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  int64_t NumKeys() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return static_cast<int64_t>(values_.size());
  }
  // Inside WithLock(kExclusive).
  absl::Status Store(const std::string& key,
                     std::string value) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t bytes = FileLog::BytesOf(key, value);
    if (log_->log_bytes() + bytes > options_.max_bytes) {
      RETURN_IF_ERROR(MakeRoomLocked(bytes));
    }
    RETURN_IF_ERROR(log_->Append({RecordKind::kSet, key, value}));
    SetLocked(key, std::move(value));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Erase(const std::string& key)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!values_.contains(key)) return false;
    RETURN_IF_ERROR(log_->Append({RecordKind::kDelete, key, ""}));
    EraseLocked(key);
    return true;
  }

  // Inside WithLock: what of the log was read.
  FileLog::Position position() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return log_->position();
  }
  // Returns once there is more than `seen`; false if `deadline` passed before.
  bool AwaitChange(FileLog::Position seen, async::MonotonicTime deadline);

 private:
  // A log is compacted when it has this many bytes, and this many times what
  // its keys and values take: a change costs at most a few times its bytes.
  static constexpr uint64_t kShortLog = uint64_t{1} << 20;
  static constexpr uint64_t kLongLogFactor = 4;

  absl::StatusOr<bool> LockLocked(FileLog::Lock lock,
                                  async::MonotonicTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CatchUpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the log of a new member, empties a left-over one, and counts the
  // member. Under the exclusive data lock.
  absl::Status EnterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplyLocked(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetLocked(std::string key, std::string value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLocked(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Under the exclusive data lock, everything read: puts what the log says in
  // its place, where it is long for that.
  void CompactIfLongLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for want of room for a record of `bytes`. kResourceExhausted if
  // there still is none.
  absl::Status MakeRoomLocked(uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CompactLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  async::Mutex mutex_;
  async::CondVar changed_;
  std::unique_ptr<FileLog> log_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  // What a log of nothing but these would take.
  uint64_t value_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not before the log is so long: compacting it failed.
  uint64_t compact_above_ ABSL_GUARDED_BY(mutex_) = kShortLog;
  int num_joined_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_finished_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_FILE_TABLE_H_
