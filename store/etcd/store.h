#ifndef HAWSER_STORE_ETCD_STORE_H_
#define HAWSER_STORE_ETCD_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "store/store.h"
#include "store/watch_threads.h"

namespace hawser::store {

struct EtcdStoreOptions {
  // "host:port" of a member of the cluster.
  std::string address = {};
  // Prefix of all keys. Jobs with different prefixes do not see each other's
  // keys. Keys of a job stay in etcd, so each job needs its own prefix.
  std::string prefix = "hawser";
  // Timeout of Connect, and default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  // Must fit in etcd's limit on one request, by default 1.5 MiB.
  // `max_total_bytes` is not used; etcd has its own limit.
  StoreLimits limits = {.max_value_bytes = size_t{1} << 20};
};

// A store in etcd, over version 3 of its API. It survives the failure of any
// worker and, with a cluster of three, of a machine.
//
// Key k is etcd's key "<prefix>/data/k". Changes are transactions; waiting uses
// a watch, and a watch of the store also a thread. A lease is one of etcd, with
// its lifetime rounded up to seconds, and at least etcd's minimum: one and a
// half of its election timeouts, by default 2 s. A lost connection is reopened
// within the timeout of the call. Each transaction also writes
// "<prefix>/changes/...", under a lease of 20 minutes, to recognise retries, so
// that each change is applied once if its call takes less than 10 minutes.
// Connections are neither encrypted nor authenticated.
//
// Errors besides those of Store are etcd's, such as kPermissionDenied.
class EtcdStore final : public Store {
 public:
  // Connects. kUnavailable if no server replies in time.
  static absl::StatusOr<std::unique_ptr<EtcdStore>> Connect(
      EtcdStoreOptions options);
  // Revokes the lease if etcd is reachable.
  ~EtcdStore() override;

 private:
  class Client;
  // The new value and the reply of a change.
  struct Update {
    enum class Kind { kKeep, kPut, kRemove };
    Kind kind = Kind::kKeep;
    std::string value = {};
    int64_t reply = 0;
  };
  // Computes an update from the current value, null if absent. Runs once, and
  // again after each concurrent change of the key.
  using Decide =
      absl::FunctionRef<absl::StatusOr<Update>(const std::string* value)>;

  EtcdStore(const EtcdStoreOptions& options, std::unique_ptr<Client> client);

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

  // Returns the values of `keys` once all are present at the same time.
  absl::StatusOr<std::vector<std::string>> WhenPresent(
      std::span<const std::string> keys, bool keys_only, const CallTime& time);
  // Applies one change and returns the reply of its Update.
  absl::StatusOr<int64_t> Change(const std::string& key, const CallTime& time,
                                 Decide decide);
  absl::StatusOr<int64_t> TryChange(const std::string& key,
                                    async::MonotonicTime deadline,
                                    Decide decide);

  // Sets `key` under a lease of etcd, once per attempt of its own.
  absl::Status SetUnderLease(const std::string& key, const std::string& value,
                             int64_t seconds, async::MonotonicTime deadline);
  // The values of `keys` once one of them has changed.
  absl::StatusOr<std::vector<std::string>> Watch(
      std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch);

  const std::unique_ptr<Client> client_;
  internal::WatchThreads watches_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_ETCD_STORE_H_
