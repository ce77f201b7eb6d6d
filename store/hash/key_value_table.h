#ifndef HAWSER_STORE_HASH_KEY_VALUE_TABLE_H_
#define HAWSER_STORE_HASH_KEY_VALUE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "store/store.h"
#include "store/store_limits.h"

namespace hawser::store::internal {

// Keys and values in memory, with leases and with waiting for keys; shared by
// the hash store and the store server. Thread-safe; calls do not block.
//
// Errors: see Store. Keys and values above the limits are kInvalidArgument.
class KeyValueTable {
 public:
  // Overhead of a key besides its bytes and those of its value, which counts
  // towards StoreLimits::max_total_bytes. 104 to 148 bytes were measured.
  static constexpr size_t kKeyOverheadBytes = 148;

  // `clock` times the leases and must outlive the table. `max_client_bytes`
  // limits the keys last written by one client, counted as in
  // StoreLimits::max_total_bytes.
  KeyValueTable(async::Clock* clock, StoreLimits limits,
                size_t max_client_bytes = std::numeric_limits<size_t>::max());
  // Waiting calls get kCancelled.
  ~KeyValueTable();

  // `client` names the writer of the value; "" has no limit per client.
  absl::Status Set(const std::string& key, std::string value,
                   const std::string& client = "");
  // As Set, and removes the key unless the lease is renewed by another SetLease
  // within `lifetime`; see LeaseSchedule.
  absl::Status SetLease(const std::string& key, std::string value,
                        absl::Duration lifetime,
                        const std::string& client = "");
  std::optional<std::string> Get(const std::string& key) const;
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t delta,
                              const std::string& client = "");
  absl::StatusOr<int64_t> Append(const std::string& key,
                                 const std::string& suffix,
                                 const std::string& client = "");
  absl::StatusOr<CompareAndSetResult> CompareAndSet(
      const std::string& key, const std::string& expected, std::string desired,
      const std::string& client = "");
  bool Delete(const std::string& key);
  int64_t NumKeys() const;

  // Returns the keys that are absent now, in the order given.
  absl::StatusOr<std::vector<std::string>> Missing(
      std::span<const std::string> keys) const;

  // Completes once all of `keys` are present at the same time. Callbacks run
  // after the change that made them present, in its thread. Cancel the future
  // to stop waiting. `keys` must not be empty.
  async::Future<void> WhenPresent(std::vector<std::string> keys);

  // Called with the bytes of a result before they are copied; an error becomes
  // the result. Must not call the table.
  using AdmitBytes = std::function<absl::Status(size_t bytes)>;

  // Returns the value of `key` once it is present. Callbacks and Cancel as for
  // WhenPresent.
  async::Future<std::string> WhenValue(std::string key,
                                       AdmitBytes admit = nullptr);

  // Returns the values of `keys`, empty for absent ones, once one of them has
  // changed; see Store::WhenChanged. Callbacks and Cancel as for WhenPresent.
  async::Future<std::vector<std::string>> WhenChanged(
      std::vector<WatchedKey> keys, AdmitBytes admit = nullptr);

  // Calls that wait for keys or watch them.
  int64_t num_waiting() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_HASH_KEY_VALUE_TABLE_H_
