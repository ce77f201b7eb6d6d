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
  ASSIGN_OR_RETURN(std::vector<std::string> values, Await({key}, time));
  return std::move(values.front());
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
  return Await({keys.begin(), keys.end()}, time).status();
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

absl::StatusOr<std::vector<std::string>> HashStore::Await(
    std::vector<std::string> keys, const CallTime& time) {
  async::Future<std::vector<std::string>> present = table_.WhenPresent(keys);
  absl::StatusOr<std::vector<std::string>> values =
      present.WaitUntil(time.deadline);
  if (values.ok() || !absl::IsDeadlineExceeded(values.status())) return values;
  present.Cancel();
  ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                   table_.Missing(keys));
  return TimeoutError(missing.empty() ? keys.front() : missing.front(), time,
                      "");
}

}  // namespace hawser::store
