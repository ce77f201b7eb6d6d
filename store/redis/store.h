#ifndef HAWSER_STORE_REDIS_STORE_H_
#define HAWSER_STORE_REDIS_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace hawser::store {

struct RedisStoreOptions {
  // Name or address of Redis's machine, and its port.
  std::string host = "127.0.0.1";
  int port = 6379;
  // Empty: none; with a password alone, Redis's default user is meant.
  std::string username = {};
  std::string password = {};
  // Number of the database.
  int database = 0;
  // Names the job. Jobs of different prefixes do not see each other; what a job
  // wrote stays in Redis, so each job needs one of its own.
  std::string prefix = "hawser";
  // Of Connect, and of calls that state none.
  absl::Duration timeout = kDefaultTimeout;
  // Lowered to what Redis takes (proto-max-bulk-len). `max_total_bytes` is its
  // own matter (maxmemory).
  StoreLimits limits = {};
};

// A store in Redis 6 or later, one that is no cluster.
//
// All keys of a job are fields of the one hash "hawser:{<prefix>}", which
// `redis-cli DEL` removes. Changes are scripts, which Redis runs one after the
// other; those who wait subscribe to a channel that a script which creates the
// key publishes to. Each call that waits takes a connection of its own. A lost
// connection is opened again, within the time of the call: Redis keeps, for 20
// minutes, what the last change of each connection answered, by which a
// repetition is known, so that each is applied once. Connections are not
// encrypted.
//
// Errors besides those of Store:
//   kUnauthenticated     Redis wants a password, or another one.
//   kPermissionDenied    the user may not do this.
//   kFailedPrecondition  what the store held is lost, since Redis was restarted
//                        without persistence, flushed, or evicts; or it is a
//                        replica or a cluster.
class RedisStore final : public Store {
 public:
  // Connects. kUnavailable if nobody answers there in time; kInvalidArgument
  // if there is no such database.
  static absl::StatusOr<std::unique_ptr<RedisStore>> Connect(
      RedisStoreOptions options);
  ~RedisStore() override;

 private:
  class Client;

  RedisStore(const RedisStoreOptions& options, std::unique_ptr<Client> client);

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
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

  // Index of a key that is absent; keys.size() if all are present.
  absl::StatusOr<size_t> FirstMissing(std::span<const std::string> keys,
                                      async::MonotonicTime deadline);

  const std::unique_ptr<Client> client_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_REDIS_STORE_H_
