// Watch over the connections of a server, which closes those that misuse it.

#ifndef HAWSER_NET_SERVER_CONNECTION_WATCH_H_
#define HAWSER_NET_SERVER_CONNECTION_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "net/server/connection_limiter.h"
#include "net/server/misuse_detector.h"
#include "net/server/open_calls.h"
#include "telemetry/log_rate_limiter.h"
#include "telemetry/process_memory.h"

namespace hawser::net {

// Reads the memory of the process every 250 ms. Examines all connections
// whenever it has grown by 16 MiB, and in addition every second, or more rarely
// so that it costs 1/4000 of a core at most. Closes what MisuseDetector
// finds, and logs it at most once a minute.
//
// Is alert to a connection for a moment after it was passed to gRPC, and to all
// of them for longer after the memory has grown or a misuse was found. Then
// reads the memory every 10 ms, and counts the calls of those connections that
// have received something, or more rarely so that it costs 1/50 of a core at
// most.
//
// Examines TCP connections; Unix sockets serve only the user of the process.
// Not thread-safe.
class ConnectionWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(250);
  static constexpr absl::Duration kAlertInterval = absl::Milliseconds(10);

  // Called with each connection that was closed.
  using OnMisuse =
      std::function<void(const ConnectionLimiter::Connection& connection,
                         async::MonotonicTime now)>;

  // `server` is the address of the server, for the log. `connections` must
  // outlive this object. `resident_bytes` returns the memory of the process.
  ConnectionWatch(
      MisuseDetector::Limits limits, std::string server,
      const ConnectionLimiter* connections, OnMisuse on_misuse,
      std::function<size_t()> resident_bytes = telemetry::ResidentBytes);

  // How long a poll() may wait for the next Tick, in milliseconds; -1 without
  // connections.
  int PollTimeout(async::MonotonicTime now) const;

  // A connection was passed to gRPC; `connection` is empty for a Unix socket.
  void OnPassed(const ConnectionKey& connection, async::MonotonicTime now);

  // To be called at least as often.
  void Tick(async::MonotonicTime now);

  // Number of connections closed so far. Thread-safe.
  int64_t num_closed() const { return num_closed_.load(); }

 private:
  using Connection = ConnectionLimiter::Connection;
  using ConnectionByKey = absl::flat_hash_map<ConnectionKey, const Connection*>;

  // Returns freed memory to the system when it is time.
  void ReturnMemory(async::MonotonicTime now);
  void BeAlertToAll(async::MonotonicTime now, absl::Duration time);
  bool IsAlert(async::MonotonicTime now) const {
    return now < alert_to_all_until_ || !young_.empty();
  }
  ConnectionByKey ByKey() const;
  // Checks all connections.
  void Examine(size_t resident_bytes, async::MonotonicTime now);
  // Counts the calls of those that have received something since the last time.
  void ExamineReceivers(async::MonotonicTime now);
  void Close(const MisuseDetector::Finding& finding,
             const Connection& connection, async::MonotonicTime now);

  std::atomic<int64_t> num_closed_{0};
  MisuseDetector detector_;
  const std::string server_;
  const ConnectionLimiter& connections_;
  const OnMisuse on_misuse_;
  const std::function<size_t()> resident_bytes_;
  OpenCalls open_calls_;
  async::MonotonicTime next_tick_{};
  async::MonotonicTime alert_to_all_until_{};
  // Connections to which it is alert, and until when.
  absl::flat_hash_map<ConnectionKey, async::MonotonicTime> young_;
  // Bytes that connections had received when their calls were counted last.
  absl::flat_hash_map<ConnectionKey, int64_t> counted_at_;
  async::MonotonicTime next_examination_{};
  // When the last examination ended.
  size_t examined_bytes_ = 0;
  // Closed, but not released by gRPC yet.
  absl::flat_hash_set<ConnectionKey> closing_;
  // How often the memory of ended connections is still to be returned to the
  // system, and when to do it next.
  int returns_left_ = 0;
  async::MonotonicTime next_return_{};
  telemetry::LogRateLimiter log_limiter_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_CONNECTION_WATCH_H_
