#include "store/file_store.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "store/internal/file_log.h"
#include "store/internal/value_operations.h"

namespace hawser::store {
namespace {

using internal::FileLog;
using internal::Record;
using internal::RecordKind;

// How often those who wait look for a change, and for a free lock.
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
constexpr absl::Duration kLockInterval = absl::Milliseconds(1);
// What a closing member spends to count itself.
constexpr absl::Duration kCloseTimeout = absl::Seconds(5);

// A log is compacted when it has this many bytes, and this many times what its
// keys and values take: a change costs at most a few times its bytes.
constexpr uint64_t kShortLog = uint64_t{1} << 20;
constexpr uint64_t kLongLogFactor = 4;
// Of a record with the numbers of members, at most.
constexpr uint64_t kCountsBytes = 64;

constexpr char kLocked[] = "another member keeps the file locked";

}  // namespace

// The log, and what was read of it.
class FileStore::State {
 public:
  explicit State(FileStoreOptions options) : options_(std::move(options)) {}

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
    if (log_->log_bytes() + bytes > options_.limits.max_total_bytes) {
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

  const FileStoreOptions options_;

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

absl::StatusOr<bool> FileStore::State::Join(async::MonotonicTime deadline) {
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  while (true) {
    ASSIGN_OR_RETURN(log_, FileLog::Open(options_.path));
    ASSIGN_OR_RETURN(const bool locked,
                     LockLocked(FileLog::Lock::kExclusive, deadline));
    if (!locked) return false;
    // The last member of a run may have deleted it since we opened it.
    if (log_->IsLinked()) break;
  }
  const absl::Status status = EnterLocked();
  log_->UnlockData();
  RETURN_IF_ERROR(status);
  return true;
}

absl::Status FileStore::State::EnterLocked() {
  const absl::Status read = CatchUpLocked();
  ASSIGN_OR_RETURN(const bool others, log_->HasOtherMembers());
  const bool complete =
      options_.num_members > 0 && num_finished_ >= options_.num_members;
  const bool left_over =
      complete || num_joined_ != num_finished_ || absl::IsDataLoss(read);
  if (!others && left_over) {
    ForgetAllLocked();
    RETURN_IF_ERROR(log_->Clear());
  } else {
    RETURN_IF_ERROR(read);
  }
  if (options_.num_members > 0 && num_joined_ >= options_.num_members) {
    return absl::FailedPreconditionError(absl::StrCat(
        "all ", options_.num_members, " members have opened ", options_.path,
        " already: use another file, or delete it if no job uses it"));
  }
  RETURN_IF_ERROR(log_->Append({RecordKind::kJoin, "", ""}));
  ++num_joined_;
  return log_->HoldMemberLock();
}

void FileStore::State::Finish() {
  // Without success the file counts as left over, which the next run handles.
  (void)WithLock(
      FileLog::Lock::kExclusive,
      async::AddDelay(std::chrono::steady_clock::now(), kCloseTimeout),
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
        RETURN_IF_ERROR(log_->Append({RecordKind::kFinish, "", ""}));
        if (++num_finished_ == options_.num_members) log_->Unlink();
        return absl::OkStatus();
      });
}

bool FileStore::State::AwaitChange(FileLog::Position seen,
                                   async::MonotonicTime deadline) {
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  // So as not to look at an unfinished record over and over.
  bool pause = log_->HasLeftOver();
  while (log_->position() == seen &&
         (std::exchange(pause, false) || !log_->HasMore())) {
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    changed_.WaitUntil(&mutex_,
                       std::min(deadline, async::AddDelay(now, kPollInterval)));
  }
  return std::chrono::steady_clock::now() < deadline;
}

absl::StatusOr<bool> FileStore::State::LockLocked(
    FileLog::Lock lock, async::MonotonicTime deadline) {
  while (true) {
    ASSIGN_OR_RETURN(const bool locked, log_->TryLockData(lock));
    if (locked) return true;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    changed_.WaitUntil(&mutex_,
                       std::min(deadline, async::AddDelay(now, kLockInterval)));
  }
}

absl::Status FileStore::State::CatchUpLocked() {
  if (!log_->IsLinked()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.path, " was deleted or replaced while the job runs"));
  }
  if (!log_->HasMore()) return absl::OkStatus();
  ASSIGN_OR_RETURN(FileLog::Batch batch, log_->ReadMore());
  if (batch.from_beginning) ForgetAllLocked();
  for (Record& record : batch.records) {
    RETURN_IF_ERROR(ApplyLocked(std::move(record)));
  }
  return absl::OkStatus();
}

absl::Status FileStore::State::ApplyLocked(Record record) {
  switch (record.kind) {
    case RecordKind::kSet:
      SetLocked(std::move(record.key), std::move(record.value));
      break;
    case RecordKind::kDelete:
      EraseLocked(record.key);
      break;
    case RecordKind::kJoin:
      ++num_joined_;
      break;
    case RecordKind::kFinish:
      ++num_finished_;
      break;
    case RecordKind::kCounts: {
      const std::vector<std::string> counts = absl::StrSplit(record.value, ' ');
      if (counts.size() != 2 || !absl::SimpleAtoi(counts[0], &num_joined_) ||
          !absl::SimpleAtoi(counts[1], &num_finished_)) {
        return absl::DataLossError(absl::StrCat(
            options_.path,
            " is damaged: it does not say how many members it has; end the "
            "job and delete the file"));
      }
      break;
    }
  }
  return absl::OkStatus();
}

void FileStore::State::SetLocked(std::string key, std::string value) {
  value_bytes_ += FileLog::BytesOf(key, value);
  const auto [it, added] = values_.try_emplace(std::move(key));
  if (!added) value_bytes_ -= FileLog::BytesOf(it->first, it->second);
  it->second = std::move(value);
}

void FileStore::State::EraseLocked(const std::string& key) {
  const auto it = values_.find(key);
  if (it == values_.end()) return;
  value_bytes_ -= FileLog::BytesOf(key, it->second);
  values_.erase(it);
}

void FileStore::State::ForgetAllLocked() {
  values_.clear();
  value_bytes_ = 0;
  num_joined_ = num_finished_ = 0;
}

void FileStore::State::CompactIfLongLocked() {
  if (log_->log_bytes() <= compact_above_ ||
      log_->log_bytes() / kLongLogFactor <= value_bytes_) {
    return;
  }
  // Without success, such as on a full disk, the log goes on as it is.
  compact_above_ = CompactLocked().ok() ? kShortLog : 2 * log_->log_bytes();
}

absl::Status FileStore::State::MakeRoomLocked(uint64_t bytes) {
  // More often would cost more than it gains.
  const absl::Status compacted =
      log_->CompactedBytesLimit() > 2 * (value_bytes_ + kCountsBytes)
          ? CompactLocked()
          : absl::OkStatus();
  if (log_->log_bytes() + bytes <= options_.limits.max_total_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the log ", options_.path, " is full: it has ", log_->log_bytes(),
      " bytes of ", options_.limits.max_total_bytes, ", and its ",
      values_.size(), " keys take ", value_bytes_, " of them",
      compacted.ok() ? "" : absl::StrCat("; ", compacted.message())));
}

absl::Status FileStore::State::CompactLocked() {
  std::vector<Record> records;
  records.reserve(values_.size() + 1);
  records.push_back(
      {RecordKind::kCounts, "", absl::StrCat(num_joined_, " ", num_finished_)});
  for (const auto& [key, value] : values_) {
    records.push_back({RecordKind::kSet, key, value});
  }
  return log_->Compact(records);
}

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(
    FileStoreOptions options) {
  if (options.path.empty() || options.num_members < 0 ||
      options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a file store wants a path, and neither a negative number of members "
        "nor a negative timeout; got \"",
        options.path, "\", ", options.num_members, " and ",
        absl::FormatDuration(options.timeout)));
  }
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  const CallTime time = {.start = now,
                         .deadline = async::AddDelay(now, options.timeout)};
  auto state = std::make_unique<State>(options);
  ASSIGN_OR_RETURN(const bool joined, state->Join(time.deadline));
  std::unique_ptr<FileStore> store(
      new FileStore(std::move(options), joined ? std::move(state) : nullptr));
  if (!joined) return store->TimeoutError("", time, kLocked);
  return store;
}

FileStore::FileStore(FileStoreOptions options, std::unique_ptr<State> state)
    : Store(absl::StrCat("file store ", options.path), options.timeout,
            options.limits),
      state_(std::move(state)) {}

FileStore::~FileStore() {
  if (state_ != nullptr) state_->Finish();
}

template <class Body>
absl::Status FileStore::Run(bool write, const std::string& key,
                            const CallTime& time, Body body) {
  ASSIGN_OR_RETURN(const bool done,
                   state_->WithLock(write ? FileLog::Lock::kExclusive
                                          : FileLog::Lock::kShared,
                                    time.deadline, std::move(body)));
  return done ? absl::OkStatus() : TimeoutError(key, time, kLocked);
}

absl::Status FileStore::DoSet(const std::string& key, std::string value,
                              const CallTime& time) {
  return Run(/*write=*/true, key, time,
             [&] { return state_->Store(key, std::move(value)); });
}

absl::StatusOr<std::string> FileStore::DoGet(const std::string& key,
                                             const CallTime& time) {
  std::string value;
  RETURN_IF_ERROR(Await({&key, 1}, time, [&] { value = *state_->Find(key); }));
  return value;
}

absl::StatusOr<int64_t> FileStore::DoAdd(const std::string& key, int64_t delta,
                                         const CallTime& time) {
  int64_t sum = 0;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(sum, internal::AddToNumber(key, state_->Find(key), delta));
    return state_->Store(key, absl::StrCat(sum));
  }));
  return sum;
}

absl::StatusOr<int64_t> FileStore::DoAppend(const std::string& key,
                                            std::string suffix,
                                            const CallTime& time) {
  int64_t bytes = 0;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::string value,
                     internal::Appended(key, state_->Find(key), suffix,
                                        limits().max_value_bytes));
    bytes = static_cast<int64_t>(value.size());
    return state_->Store(key, std::move(value));
  }));
  return bytes;
}

absl::StatusOr<CompareAndSetResult> FileStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  CompareAndSetResult result;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    const std::string* value = state_->Find(key);
    result.swapped = internal::IsExpected(value, expected);
    if (!result.swapped) {
      if (value != nullptr) result.value = *value;
      return absl::OkStatus();
    }
    result.value = desired;
    return state_->Store(key, std::move(desired));
  }));
  return result;
}

absl::Status FileStore::DoWait(std::span<const std::string> keys,
                               const CallTime& time) {
  return Await(keys, time, [] {});
}

absl::StatusOr<bool> FileStore::DoCheck(std::span<const std::string> keys,
                                        const CallTime& time) {
  bool present = false;
  RETURN_IF_ERROR(Run(/*write=*/false, keys.front(), time, [&] {
    present = FirstMissing(keys) == nullptr;
    return absl::OkStatus();
  }));
  return present;
}

absl::StatusOr<bool> FileStore::DoDelete(const std::string& key,
                                         const CallTime& time) {
  bool deleted = false;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(deleted, state_->Erase(key));
    return absl::OkStatus();
  }));
  return deleted;
}

absl::StatusOr<int64_t> FileStore::DoNumKeys(const CallTime& time) {
  int64_t count = 0;
  RETURN_IF_ERROR(Run(/*write=*/false, "", time, [&] {
    count = state_->NumKeys();
    return absl::OkStatus();
  }));
  return count;
}

const std::string* FileStore::FirstMissing(
    std::span<const std::string> keys) const {
  for (const std::string& key : keys) {
    if (state_->Find(key) == nullptr) return &key;
  }
  return nullptr;
}

template <class Body>
absl::Status FileStore::Await(std::span<const std::string> keys,
                              const CallTime& time, Body when_present) {
  while (true) {
    const std::string* missing = nullptr;
    FileLog::Position seen;
    RETURN_IF_ERROR(Run(/*write=*/false, keys.front(), time, [&] {
      missing = FirstMissing(keys);
      seen = state_->position();
      if (missing == nullptr) when_present();
      return absl::OkStatus();
    }));
    if (missing == nullptr) return absl::OkStatus();
    if (!state_->AwaitChange(seen, time.deadline)) {
      return TimeoutError(*missing, time, "");
    }
  }
}

}  // namespace hawser::store
