#ifndef HAWSER_STORE_REDIS_STORE_H_
#define HAWSER_STORE_REDIS_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "store/store.h"
#include "store/watch_threads.h"

namespace hawser::store {

struct RedisStoreOptions {
  // Host name or address of Redis, and its port.
  std::string host = "127.0.0.1";
  int port = 6379;
  // Empty for none. A password without a user name selects Redis's default
  // user.
  std::string username = {};
  std::string password = {};
  // Number of the database.
  int database = 0;
  // Prefix of the job's data. Jobs with different prefixes do not see each
  // other's keys. Data of a job stays in Redis, so each job needs its own
  // prefix.
  std::string prefix = "hawser";
  // Timeout of Connect, and default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  // Lowered to Redis's limit (proto-max-bulk-len). `max_total_bytes` is not
  // used; Redis has its own limit (maxmemory).
  StoreLimits limits = {};
};

// A store in Redis 6 or later, without clustering.
//
// All keys of a job are fields of the one hash "hawser:{<prefix>}"; the sorted
// set "hawser:{<prefix>}:leases" says when those that are leases end. To forget
// a job, remove both with `redis-cli DEL`. Changes are scripts, which Redis
// runs sequentially, and which also remove the keys whose leases have ended.
//
// Waiting calls and watches subscribe to the channels of their keys, to which
// every script that changes a value publishes. Each of them uses its own
// connection, and a watch its own thread. A lost connection
// is reopened within the timeout of the call. Redis keeps the reply of the last
// change of each slot for 20 minutes to recognise retries, so that each change
// is applied once. Connections are not encrypted.
//
// Errors besides those of Store:
//   kUnauthenticated     the password is missing or wrong.
//   kPermissionDenied    Redis denies the command to this user.
//   kFailedPrecondition  the store's data is lost, since Redis was restarted
//                        without persistence, was flushed, or evicts keys; or
//                        Redis is a replica or a cluster.
class RedisStore final : public Store {
 public:
  // Connects. kUnavailable if no server replies in time; kInvalidArgument if
  // there is no such database.
  static absl::StatusOr<std::unique_ptr<RedisStore>> Connect(
      RedisStoreOptions options);
  ~RedisStore() override;

 private:
  class Client;

  RedisStore(const RedisStoreOptions& options, std::unique_ptr<Client> client);

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

  // Returns the index of a key that is absent, or keys.size() if all are
  // present.
  absl::StatusOr<size_t> FirstMissing(std::span<const std::string> keys,
                                      async::MonotonicTime deadline);

  struct Look {
    // The result of the watch; nullopt if it goes on.
    std::optional<std::vector<std::string>> changed;
    // When a lease of the keys ends.
    async::MonotonicTime again = async::kNever;
  };
  // Reads the keys of a watch.
  absl::StatusOr<Look> LookAt(std::span<const WatchedKey> keys,
                              async::MonotonicTime deadline);
  // The values of `keys` once one of them has changed.
  absl::StatusOr<std::vector<std::string>> Watch(
      std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch);

  const std::unique_ptr<Client> client_;
  internal::WatchThreads watches_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_REDIS_STORE_H_
