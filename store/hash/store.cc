#include "store/hash/store.h"

#include <utility>
#include <vector>

#include "async/future.h"
#include "async/status_macros.h"

namespace hawser::store {

HashStore::HashStore(HashStoreOptions options)
    : Store("hash store", options.timeout, options.limits),
      own_clock_(options.clock == nullptr ? std::make_unique<async::RealClock>()
                                          : nullptr),
      table_(options.clock == nullptr ? own_clock_.get() : options.clock,
             options.limits) {}

absl::Status HashStore::DoSet(const std::string& key, std::string value,
                              const CallTime&) {
  return table_.Set(key, std::move(value));
}

absl::Status HashStore::DoSetLease(const std::string& key, std::string value,
                                   absl::Duration lifetime, const CallTime&) {
  return table_.SetLease(key, std::move(value), lifetime);
}

async::Future<std::vector<std::string>> HashStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  return table_.WhenChanged(std::move(keys));
}

absl::StatusOr<std::string> HashStore::DoGet(const std::string& key,
                                             const CallTime& time) {
  if (auto value = table_.Get(key)) return *std::move(value);
  const async::Future<std::string> present = table_.WhenValue(key);
  absl::StatusOr<std::string> value = present.WaitUntil(time.deadline);
  if (!absl::IsDeadlineExceeded(value.status())) return value;
  present.Cancel();
  return AbsentError({&key, 1}, time);
}

absl::StatusOr<int64_t> HashStore::DoAdd(const std::string& key, int64_t delta,
                                         const CallTime&) {
  return table_.Add(key, delta);
}

absl::StatusOr<int64_t> HashStore::DoAppend(const std::string& key,
                                            std::string suffix,
                                            const CallTime&) {
  return table_.Append(key, suffix);
}

absl::StatusOr<CompareAndSetResult> HashStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime&) {
  return table_.CompareAndSet(key, expected, std::move(desired));
}

absl::Status HashStore::DoWait(std::span<const std::string> keys,
                               const CallTime& time) {
  const async::Future<void> present =
      table_.WhenPresent({keys.begin(), keys.end()});
  absl::Status status = present.WaitUntil(time.deadline);
  if (!absl::IsDeadlineExceeded(status)) return status;
  present.Cancel();
  return AbsentError(keys, time);
}

absl::StatusOr<bool> HashStore::DoCheck(std::span<const std::string> keys,
                                        const CallTime&) {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                   table_.Missing(keys));
  return missing.empty();
}

absl::StatusOr<bool> HashStore::DoDelete(const std::string& key,
                                         const CallTime&) {
  return table_.Delete(key);
}

absl::StatusOr<int64_t> HashStore::DoNumKeys(const CallTime&) {
  return table_.NumKeys();
}

absl::Status HashStore::AbsentError(std::span<const std::string> keys,
                                    const CallTime& time) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                   table_.Missing(keys));
  return TimeoutError(missing.empty() ? keys.front() : missing.front(), time,
                      "");
}

}  // namespace hawser::store
