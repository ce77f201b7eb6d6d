#ifndef HAWSER_STORE_HASH_STORE_H_
#define HAWSER_STORE_HASH_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "store/hash/key_value_table.h"
#include "store/store.h"
#include "store/store_limits.h"

namespace hawser::store {

struct HashStoreOptions {
  // Default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  StoreLimits limits = {};
  // Times the leases; null for a clock of the store's own. Must outlive the
  // store.
  async::Clock* clock = nullptr;
};

// A store in the memory of one process, for workers that are threads of it and
// share the object.
class HashStore final : public Store {
 public:
  explicit HashStore(HashStoreOptions options = {});

 private:
  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
  absl::Status DoSetLease(const std::string& key, std::string value,
                          absl::Duration lifetime,
                          const CallTime& time) override;
  async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<WatchedKey> keys) override;
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime& time) override;
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime& time) override;
  absl::StatusOr<CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime& time) override;
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime& time) override;
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime& time) override;
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoNumKeys(const CallTime& time) override;

  // The error of a call whose `keys` were not present in time.
  absl::Status AbsentError(std::span<const std::string> keys,
                           const CallTime& time) const;

  // Null if the options have a clock.
  const std::unique_ptr<async::Clock> own_clock_;
  internal::KeyValueTable table_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_HASH_STORE_H_
