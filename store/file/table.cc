#include "store/file/table.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace hawser::store::internal {
namespace {

// Interval at which waiting calls poll for a change or a free lock.
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
constexpr absl::Duration kLockInterval = absl::Milliseconds(1);
// Time that a closing member spends on recording its end.
constexpr absl::Duration kCloseTimeout = absl::Seconds(5);

// Maximum size of a record with the numbers of members.
constexpr uint64_t kCountsBytes = 64;

}  // namespace

absl::StatusOr<bool> FileTable::Join(async::MonotonicTime deadline) {
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  while (true) {
    ASSIGN_OR_RETURN(log_, FileLog::Open(options_.path));
    ASSIGN_OR_RETURN(const bool locked,
                     LockLocked(FileLog::Lock::kExclusive, deadline));
    if (!locked) return false;
    // The last member of a run may have deleted the file since we opened it.
    if (log_->IsLinked()) break;
  }
  const absl::Status status = EnterLocked();
  log_->UnlockData();
  RETURN_IF_ERROR(status);
  return true;
}

absl::Status FileTable::EnterLocked() {
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
        "all ", options_.num_members, " members have already opened ",
        options_.path, ": use another file, or delete it if no job uses it"));
  }
  RETURN_IF_ERROR(log_->Append({.kind = RecordKind::kJoin}));
  ++num_joined_;
  return log_->HoldMemberLock();
}

void FileTable::Finish() {
  // If this fails, the file counts as left over, which the next run handles.
  (void)WithLock(
      FileLog::Lock::kExclusive,
      async::AddDelay(std::chrono::steady_clock::now(), kCloseTimeout),
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
        RETURN_IF_ERROR(log_->Append({.kind = RecordKind::kFinish}));
        if (++num_finished_ == options_.num_members) log_->Unlink();
        return absl::OkStatus();
      });
}

bool FileTable::AwaitChange(FileLog::Position seen,
                            async::MonotonicTime deadline,
                            const std::atomic<bool>* cancelled) {
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  // Avoids rereading an unfinished record in a busy loop.
  bool pause = log_->HasLeftOver();
  while (log_->position() == seen &&
         (std::exchange(pause, false) || !log_->HasMore())) {
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    if (cancelled != nullptr && cancelled->load()) return false;
    changed_.WaitUntil(&mutex_,
                       std::min(deadline, async::AddDelay(now, kPollInterval)));
  }
  return std::chrono::steady_clock::now() < deadline;
}

absl::StatusOr<bool> FileTable::LockLocked(FileLog::Lock lock,
                                           async::MonotonicTime deadline) {
  while (true) {
    ASSIGN_OR_RETURN(const bool locked, log_->TryLockData(lock));
    if (locked) return true;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    changed_.WaitUntil(&mutex_,
                       std::min(deadline, async::AddDelay(now, kLockInterval)));
  }
}

absl::Status FileTable::CatchUpLocked() {
  if (!log_->IsLinked()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.path, " was deleted or replaced during the job"));
  }
  if (!log_->HasMore()) return absl::OkStatus();
  ASSIGN_OR_RETURN(FileLog::Batch batch, log_->ReadMore());
  if (batch.from_beginning) ForgetAllLocked();
  for (Record& record : batch.records) {
    RETURN_IF_ERROR(ApplyLocked(std::move(record)));
  }
  return absl::OkStatus();
}

absl::Status FileTable::ApplyLocked(Record record) {
  switch (record.kind) {
    case RecordKind::kSet:
    case RecordKind::kLease:
      SetLocked(std::move(record));
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
        return absl::DataLossError(
            absl::StrCat(options_.path,
                         " is damaged: it lacks the number of members; stop "
                         "the job and delete the file"));
      }
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status FileTable::Write(Record record) {
  const uint64_t bytes =
      FileLog::BytesOf(record.kind, record.key, record.value);
  if (log_->log_bytes() + bytes > options_.max_bytes) {
    RETURN_IF_ERROR(MakeRoomLocked(bytes));
  }
  RETURN_IF_ERROR(log_->Append(record));
  SetLocked(std::move(record));
  return absl::OkStatus();
}

void FileTable::SetLocked(Record record) {
  EraseLocked(record.key);
  Value value = {.value = std::move(record.value)};
  if (record.kind == RecordKind::kLease) {
    // Of a damaged file it may be anything.
    const auto max_ms =
        static_cast<uint64_t>(kMaxLifetime / absl::Milliseconds(1));
    value.lease_end = async::AddDelay(
        std::chrono::steady_clock::now(),
        absl::Milliseconds(std::min(record.lifetime_ms, max_ms)));
    leases_.emplace(value.lease_end, record.key);
  }
  value_bytes_ += BytesOf(record.key, value);
  values_.emplace(std::move(record.key), std::move(value));
}

void FileTable::EraseLocked(const std::string& key) {
  const auto it = values_.find(key);
  if (it == values_.end()) return;
  value_bytes_ -= BytesOf(key, it->second);
  leases_.erase({it->second.lease_end, key});
  values_.erase(it);
}

void FileTable::EndLeasesLocked() {
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  while (!leases_.empty() && leases_.begin()->first <= now) {
    const std::string key = leases_.begin()->second;
    EraseLocked(key);
  }
}

uint64_t FileTable::BytesOf(const std::string& key, const Value& value) {
  return FileLog::BytesOf(
      value.lease_end == async::kNever ? RecordKind::kSet : RecordKind::kLease,
      key, value.value);
}

void FileTable::ForgetAllLocked() {
  values_.clear();
  leases_.clear();
  value_bytes_ = 0;
  num_joined_ = num_finished_ = 0;
}

void FileTable::CompactIfLongLocked() {
  if (log_->log_bytes() <= compact_above_ ||
      log_->log_bytes() / kLongLogFactor <= value_bytes_) {
    return;
  }
  // If compaction fails, such as on a full disk, the log is used as it is.
  compact_above_ = CompactLocked().ok() ? kShortLog : 2 * log_->log_bytes();
}

absl::Status FileTable::MakeRoomLocked(uint64_t bytes) {
  // Compacting more often would cost more than it gains.
  const absl::Status compacted =
      log_->CompactedBytesLimit() > 2 * (value_bytes_ + kCountsBytes)
          ? CompactLocked()
          : absl::OkStatus();
  if (log_->log_bytes() + bytes <= options_.max_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the log ", options_.path, " is full: it has ", log_->log_bytes(),
      " bytes of ", options_.max_bytes, ", and its ", values_.size(),
      " keys use ", value_bytes_, " of them",
      compacted.ok() ? "" : absl::StrCat("; ", compacted.message())));
}

absl::Status FileTable::CompactLocked() {
  std::vector<Record> records;
  records.reserve(values_.size() + 1);
  records.push_back({.kind = RecordKind::kCounts,
                     .key = "",
                     .value = absl::StrCat(num_joined_, " ", num_finished_)});
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  for (const auto& [key, value] : values_) {
    Record record = {
        .kind = RecordKind::kSet, .key = key, .value = value.value};
    if (value.lease_end != async::kNever) {
      record.kind = RecordKind::kLease;
      record.lifetime_ms = static_cast<uint64_t>(std::max(
          absl::ToInt64Milliseconds(absl::Ceil(
              async::TimeBetween(now, value.lease_end), absl::Milliseconds(1))),
          int64_t{0}));
    }
    records.push_back(std::move(record));
  }
  return log_->Compact(records);
}

}  // namespace hawser::store::internal
