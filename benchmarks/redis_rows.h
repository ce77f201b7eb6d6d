// Rows in Redis, the peer of tables on a server.

#ifndef HAWSER_BENCHMARKS_REDIS_ROWS_H_
#define HAWSER_BENCHMARKS_REDIS_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct redisContext;

namespace hawser::benchmarks {

// A redis-server of its own, without persistence, over TCP on the loopback
// interface. A key is the 8 bytes of its number, a value a packed row. Commands
// of 512 keys are sent together, before the first reply is read.
class RedisRows {
 public:
  // Starts the server. kNotFound names the package to install.
  static absl::StatusOr<std::unique_ptr<RedisRows>> Start(size_t width);
  ~RedisRows();
  RedisRows(const RedisRows&) = delete;
  RedisRows& operator=(const RedisRows&) = delete;

  // MGET of `keys`, which must exist, to `rows`, [n, width].
  absl::Status Get(std::span<const uint64_t> keys, std::span<float> rows);
  // MSET.
  absl::Status Set(std::span<const uint64_t> keys, std::span<const float> rows);

 private:
  RedisRows(int server, redisContext* connection, size_t width)
      : server_(server), connection_(connection), width_(width) {}

  // Sends commands "name key..." or "name key row...".
  absl::Status Send(const char* name, std::span<const uint64_t> keys,
                    const float* rows);

  const int server_;
  redisContext* const connection_;
  const size_t width_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_REDIS_ROWS_H_
