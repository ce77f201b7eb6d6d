// Keys and values of a file shared by several processes.

#ifndef HAWSER_STORE_FILE_TABLE_H_
#define HAWSER_STORE_FILE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
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

// Combines a log (FileLog), the state that this process has read from it, and
// this process's membership in the file. Reads the records of other members
// before each read and each change. Compacts the log when it is long or full.
// Errors are those of FileStore.
//
// A lease ends when its lifetime has passed since this process has read or
// written its record; the log has no record of the end. A compaction writes the
// rest of the lifetime.
//
// Thread-safe. Calls that wait for the file's lock do so inside an
// async::BlockingRegion.
class FileTable {
 public:
  struct Options {
    std::string path;
    // Total number of members that open the file; 0 if unknown.
    int num_members = 0;
    // Maximum size of the log.
    uint64_t max_bytes = 0;
  };

  explicit FileTable(Options options) : options_(std::move(options)) {}

  // Returns true once this object is a member, false if `deadline` passed
  // first.
  absl::StatusOr<bool> Join(async::MonotonicTime deadline);
  // Records that the member has finished; the last one deletes the file.
  void Finish();

  // Runs `body` under the data lock, with all records read. Returns false if
  // the lock was not available by the deadline.
  template <class Body>
  absl::StatusOr<bool> WithLock(FileLog::Lock lock,
                                async::MonotonicTime deadline, Body body) {
    async::BlockingRegion region;
    async::MutexLock mutex_lock(&mutex_);
    ASSIGN_OR_RETURN(const bool locked, LockLocked(lock, deadline));
    if (!locked) return false;
    absl::Status status = CatchUpLocked();
    EndLeasesLocked();
    if (status.ok()) status = body();
    if (status.ok() && lock == FileLog::Lock::kExclusive) CompactIfLongLocked();
    log_->UnlockData();
    if (lock == FileLog::Lock::kExclusive) changed_.NotifyAll();
    RETURN_IF_ERROR(status);
    return true;
  }

  // Returns null if absent. The pointer is valid inside WithLock.
  const std::string* Find(const std::string& key) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second.value;
  }
  // When the lease of the key ends; kNever if it is absent or has none. Call
  // inside WithLock.
  async::MonotonicTime LeaseEnd(const std::string& key) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto it = values_.find(key);
    return it == values_.end() ? async::kNever : it->second.lease_end;
  }
  int64_t NumKeys() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return static_cast<int64_t>(values_.size());
  }
  // Call inside WithLock(kExclusive).
  absl::Status Store(const std::string& key, std::string value) {
    return Write(
        {.kind = RecordKind::kSet, .key = key, .value = std::move(value)});
  }
  absl::Status StoreLease(const std::string& key, std::string value,
                          uint64_t lifetime_ms) {
    return Write({.kind = RecordKind::kLease,
                  .key = key,
                  .value = std::move(value),
                  .lifetime_ms = lifetime_ms});
  }
  absl::StatusOr<bool> Erase(const std::string& key)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!values_.contains(key)) return false;
    RETURN_IF_ERROR(log_->Append({.kind = RecordKind::kDelete, .key = key}));
    EraseLocked(key);
    return true;
  }

  // Position up to which the log was read. Call inside WithLock.
  FileLog::Position position() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return log_->position();
  }
  // Waits for records after `seen`; returns false if `deadline` passed first,
  // or soon after `cancelled`, unless null, has become true.
  bool AwaitChange(FileLog::Position seen, async::MonotonicTime deadline,
                   const std::atomic<bool>* cancelled = nullptr);

 private:
  // A log is compacted when it has this many bytes, and this many times the
  // size of its keys and values. A change thus costs at most a few times its
  // bytes.
  static constexpr uint64_t kShortLog = uint64_t{1} << 20;
  static constexpr uint64_t kLongLogFactor = 4;

  struct Value {
    std::string value;
    // kNever if it is not a lease.
    async::MonotonicTime lease_end = async::kNever;
  };

  absl::StatusOr<bool> LockLocked(FileLog::Lock lock,
                                  async::MonotonicTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CatchUpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the log as a new member, empties it if left over, and records the
  // member. Requires the exclusive data lock.
  absl::Status EnterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplyLocked(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends a kSet or kLease and applies it.
  absl::Status Write(Record record) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Applies a kSet or kLease.
  void SetLocked(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes keys whose leases have ended.
  void EndLeasesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static uint64_t BytesOf(const std::string& key, const Value& value);
  void EraseLocked(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Compacts the log if it is long for its content. Requires the exclusive data
  // lock and that all records are read.
  void CompactIfLongLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Compacts the log if there is no space for a record of `bytes`.
  // kResourceExhausted if there is still no space.
  absl::Status MakeRoomLocked(uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CompactLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  async::Mutex mutex_;
  async::CondVar changed_;
  std::unique_ptr<FileLog> log_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Value> values_ ABSL_GUARDED_BY(mutex_);
  // The leases among them, by their ends.
  std::set<std::pair<async::MonotonicTime, std::string>> leases_
      ABSL_GUARDED_BY(mutex_);
  // Size of a log with only the current keys and values.
  uint64_t value_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Size above which to compact; raised after a failed compaction.
  uint64_t compact_above_ ABSL_GUARDED_BY(mutex_) = kShortLog;
  int num_joined_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_finished_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_FILE_TABLE_H_
