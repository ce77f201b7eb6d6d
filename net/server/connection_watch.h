// Watch over the connections of a server, which closes those that misuse it.

#ifndef HAWSER_NET_SERVER_CONNECTION_WATCH_H_
#define HAWSER_NET_SERVER_CONNECTION_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "net/server/connection_limiter.h"
#include "net/server/misuse_detector.h"
#include "net/server/open_calls.h"
#include "telemetry/log_rate_limiter.h"

namespace hawser::net {

// Reads the memory of the process every 250 ms. Examines all connections
// whenever it has grown by 16 MiB, and in addition every second, or more rarely
// so that it costs 1/4000 of a core at most. Closes what MisuseDetector
// finds, and logs it at most once a minute.
//
// Examines TCP connections; Unix sockets serve only the user of the process.
// Not thread-safe.
class ConnectionWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(250);

  // `server` is the address of the server, for the log. `connections` must
  // outlive this object.
  ConnectionWatch(MisuseDetector::Limits limits, std::string server,
                  const ConnectionLimiter* connections);

  // How long a poll() may wait for the next Tick, in milliseconds; -1 without
  // connections.
  int PollTimeout(async::MonotonicTime now) const;

  // To be called at least as often.
  void Tick(async::MonotonicTime now);

  // Number of connections closed so far. Thread-safe.
  int64_t num_closed() const { return num_closed_.load(); }

 private:
  void Examine(size_t resident_bytes, async::MonotonicTime now);

  std::atomic<int64_t> num_closed_{0};
  MisuseDetector detector_;
  const std::string server_;
  const ConnectionLimiter& connections_;
  async::MonotonicTime next_tick_{};
  async::MonotonicTime next_examination_{};
  // When the last examination ended.
  size_t examined_bytes_ = 0;
  // Closed, but not released by gRPC yet.
  absl::flat_hash_set<ConnectionKey> closing_;
  // Ticks until the memory of released connections is returned to the system.
  int ticks_until_return_ = 0;
  int num_returns_ = 0;
  telemetry::LogRateLimiter log_limiter_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_CONNECTION_WATCH_H_
