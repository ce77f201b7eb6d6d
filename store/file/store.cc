#include "store/file/store.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "store/file/log.h"
#include "store/file/table.h"
#include "store/hash/value_operations.h"

namespace hawser::store {
namespace {

using internal::FileLog;
using internal::FileTable;

// Time for which a watch waits for the lock before it checks whether it was
// cancelled.
constexpr absl::Duration kWatchAttempt = absl::Milliseconds(500);

constexpr char kLocked[] = "another member keeps the file locked";

}  // namespace

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(
    const FileStoreOptions& options) {
  if (options.path.empty() || options.num_members < 0 ||
      options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a file store needs a path, and its number of members and "
                     "timeout must not be negative; got \"",
                     options.path, "\", ", options.num_members, " and ",
                     absl::FormatDuration(options.timeout)));
  }
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  const CallTime time = {.start = now,
                         .deadline = async::AddDelay(now, options.timeout)};
  auto table = std::make_unique<FileTable>(
      FileTable::Options{.path = options.path,
                         .num_members = options.num_members,
                         .max_bytes = options.limits.max_total_bytes});
  ASSIGN_OR_RETURN(const bool joined, table->Join(time.deadline));
  std::unique_ptr<FileStore> store(
      new FileStore(options, joined ? std::move(table) : nullptr));
  if (!joined) return store->TimeoutError("", time, kLocked);
  return store;
}

FileStore::FileStore(const FileStoreOptions& options,
                     std::unique_ptr<FileTable> table)
    : Store(absl::StrCat("file store ", options.path), options.timeout,
            options.limits),
      table_(std::move(table)) {}

FileStore::~FileStore() {
  watches_.Stop();
  if (table_ != nullptr) table_->Finish();
}

template <class Body>
absl::Status FileStore::Run(bool write, const std::string& key,
                            const CallTime& time, Body body) {
  ASSIGN_OR_RETURN(const bool done,
                   table_->WithLock(write ? FileLog::Lock::kExclusive
                                          : FileLog::Lock::kShared,
                                    time.deadline, std::move(body)));
  return done ? absl::OkStatus() : TimeoutError(key, time, kLocked);
}

absl::Status FileStore::DoSet(const std::string& key, std::string value,
                              const CallTime& time) {
  return Run(/*write=*/true, key, time,
             [&] { return table_->Store(key, std::move(value)); });
}

absl::Status FileStore::DoSetLease(const std::string& key, std::string value,
                                   absl::Duration lifetime,
                                   const CallTime& time) {
  const auto lifetime_ms = static_cast<uint64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(lifetime, absl::Milliseconds(1))));
  return Run(/*write=*/true, key, time, [&] {
    return table_->StoreLease(key, std::move(value), lifetime_ms);
  });
}

async::Future<std::vector<std::string>> FileStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  return watches_.Start(
      [this, keys = std::move(keys)](internal::WatchThreads::Watch& watch) {
        return Watch(keys, watch);
      });
}

absl::StatusOr<std::vector<std::string>> FileStore::Watch(
    std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch) {
  while (!watch.cancelled()) {
    std::optional<std::vector<std::string>> changed;
    FileLog::Position seen;
    async::MonotonicTime lease_end = async::kNever;
    ASSIGN_OR_RETURN(
        const bool read,
        table_->WithLock(
            FileLog::Lock::kShared,
            async::AddDelay(std::chrono::steady_clock::now(), kWatchAttempt),
            [&]() -> absl::Status {
              ASSIGN_OR_RETURN(changed, internal::ChangedValues(
                                            keys, [&](const std::string& key) {
                                              return table_->Find(key);
                                            }));
              for (const WatchedKey& watched : keys) {
                lease_end = std::min(lease_end, table_->LeaseEnd(watched.key));
              }
              seen = table_->position();
              return absl::OkStatus();
            }));
    if (changed.has_value()) return *std::move(changed);
    if (read) table_->AwaitChange(seen, lease_end, &watch.cancelled());
  }
  return absl::CancelledError("");
}

absl::StatusOr<std::string> FileStore::DoGet(const std::string& key,
                                             const CallTime& time) {
  std::string value;
  RETURN_IF_ERROR(Await({&key, 1}, time, [&] { value = *table_->Find(key); }));
  return value;
}

absl::StatusOr<int64_t> FileStore::DoAdd(const std::string& key, int64_t delta,
                                         const CallTime& time) {
  int64_t sum = 0;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(sum, internal::AddToNumber(key, table_->Find(key), delta));
    return table_->Store(key, absl::StrCat(sum));
  }));
  return sum;
}

absl::StatusOr<int64_t> FileStore::DoAppend(const std::string& key,
                                            std::string suffix,
                                            const CallTime& time) {
  int64_t bytes = 0;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::string value,
                     internal::Appended(key, table_->Find(key), suffix,
                                        limits().max_value_bytes));
    bytes = static_cast<int64_t>(value.size());
    return table_->Store(key, std::move(value));
  }));
  return bytes;
}

absl::StatusOr<CompareAndSetResult> FileStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  CompareAndSetResult result;
  RETURN_IF_ERROR(Run(/*write=*/true, key, time, [&]() -> absl::Status {
    const std::string* value = table_->Find(key);
    result.swapped = internal::IsExpected(value, expected);
    if (!result.swapped) {
      if (value != nullptr) result.value = *value;
      return absl::OkStatus();
    }
    result.value = desired;
    return table_->Store(key, std::move(desired));
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
    ASSIGN_OR_RETURN(deleted, table_->Erase(key));
    return absl::OkStatus();
  }));
  return deleted;
}

absl::StatusOr<int64_t> FileStore::DoNumKeys(const CallTime& time) {
  int64_t count = 0;
  RETURN_IF_ERROR(Run(/*write=*/false, "", time, [&] {
    count = table_->NumKeys();
    return absl::OkStatus();
  }));
  return count;
}

const std::string* FileStore::FirstMissing(
    std::span<const std::string> keys) const {
  for (const std::string& key : keys) {
    if (table_->Find(key) == nullptr) return &key;
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
      seen = table_->position();
      if (missing == nullptr) when_present();
      return absl::OkStatus();
    }));
    if (missing == nullptr) return absl::OkStatus();
    if (!table_->AwaitChange(seen, time.deadline)) {
      return TimeoutError(*missing, time, "");
    }
  }
}

}  // namespace hawser::store
