#ifndef HAWSER_STORE_REDIS_CONNECTION_H_
#define HAWSER_STORE_REDIS_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"

struct redisContext;

namespace hawser::store::internal {

// A reply of Redis other than an error.
struct RedisReply {
  enum class Kind { kNone, kInteger, kText, kList };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  std::string text = {};
  std::vector<RedisReply> list = {};
};

// Address of Redis, and the user and password.
struct RedisEndpoint {
  std::string host = {};
  int port = 0;
  std::string username = {};
  std::string password = {};
  int database = 0;
};

// One connection to Redis, through hiredis. Not thread-safe, except Interrupt.
// Calls block until `deadline` at most. After an error that is not a reply of
// Redis the connection is unusable.
//
//   kUnavailable       not connected, connection lost, or Redis is not ready
//                      yet: retry.
//   kDeadlineExceeded  not done by `deadline`.
//   others             error replies of Redis; see RedisStore.
class RedisConnection {
 public:
  // Connects, authenticates, and selects the database.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const RedisEndpoint& endpoint, async::MonotonicTime deadline);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Sends a command and returns its reply.
  absl::StatusOr<RedisReply> Call(std::span<const std::string> command,
                                  async::MonotonicTime deadline);

  // Makes a call in progress end with kUnavailable. Any thread may call it.
  void Interrupt();

  // Receives the next reply or, after SUBSCRIBE, the next message.
  absl::StatusOr<RedisReply> Receive(async::MonotonicTime deadline);

 private:
  explicit RedisConnection(redisContext* context) : context_(context) {}

  absl::Status Introduce(const RedisEndpoint& endpoint,
                         async::MonotonicTime deadline);
  absl::Status Send(std::span<const std::string> command,
                    async::MonotonicTime deadline);
  // Waits until poll(2) reports `events` for the socket.
  absl::Status Await(short events, async::MonotonicTime deadline);
  absl::Status Lost() const;

  redisContext* const context_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_REDIS_CONNECTION_H_
