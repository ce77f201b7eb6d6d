#include "net/server/connection_watch.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "fs/unique_fd.h"
#include "net/server/open_calls.h"
#include "net/server/socket_address.h"
#include "telemetry/log.h"
#include "telemetry/process_memory.h"

namespace hawser::net {
namespace {

constexpr std::chrono::seconds kExaminationInterval(1);
// An examination may cost this fraction of a core.
constexpr int kCostFraction = 4000;
// gRPC needs a while to release the calls of a connection that it has closed.
constexpr int kTicksUntilReturn = 4;
// Number of times that it is returned, after twice as long each time.
constexpr int kReturns = 4;

// Time on a core of this thread.
std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

int64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

// Ends the connection, and discards what gRPC has not read of it yet. Returns
// false if gRPC has closed it, or no descriptor is free.
bool Close(const ConnectionLimiter::Connection& connection) {
  // gRPC may close its descriptor at any time; another file may get the number.
  const fs::UniqueFd own(fcntl(connection.fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid() || !ConnectionLimiter::IsSame(own.get(), connection)) {
    return false;
  }
  shutdown(own.get(), SHUT_RDWR);
  char bytes[size_t{64} << 10];
  while (recv(own.get(), bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
  return true;
}

// "10.0.0.5:4242".
std::string PeerOf(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return "a client";
  }
  return ToString(peer);
}

}  // namespace

ConnectionWatch::ConnectionWatch(MisuseDetector::Limits limits,
                                 std::string server,
                                 const ConnectionLimiter* connections)
    : detector_(limits),
      server_(std::move(server)),
      connections_(*connections) {}

int ConnectionWatch::PollTimeout(async::MonotonicTime now) const {
  if (connections_.num_known() == 0 && ticks_until_return_ == 0) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(next_tick_ - now, async::MonotonicTime::duration::zero()));
  return static_cast<int>(wait.count());
}

void ConnectionWatch::Tick(async::MonotonicTime now) {
  if (now < next_tick_) return;
  next_tick_ = now + absl::ToChronoMilliseconds(kInterval);
  if (ticks_until_return_ > 0 && --ticks_until_return_ == 0) {
    telemetry::ReturnFreedMemory();
    // Some is freed later, such as by the next call of the same method.
    if (++num_returns_ < kReturns) {
      ticks_until_return_ = kTicksUntilReturn << num_returns_;
    }
  }
  const size_t resident = telemetry::ResidentBytes();
  if (now < next_examination_ &&
      resident < examined_bytes_ + MisuseDetector::kGrowthBytes) {
    return;
  }
  const std::chrono::nanoseconds before = ThreadTime();
  Examine(resident, now);
  const std::chrono::nanoseconds cost = ThreadTime() - before;
  next_examination_ = now + kExaminationInterval;
  if (closing_.empty()) {
    next_examination_ = std::max(next_examination_, now + kCostFraction * cost);
  }
  examined_bytes_ = resident;
}

void ConnectionWatch::Examine(size_t resident_bytes, async::MonotonicTime now) {
  absl::flat_hash_map<ConnectionKey, const ConnectionLimiter::Connection*>
      by_key;
  for (const ConnectionLimiter::Connection& connection : connections_.known()) {
    by_key[connection.key] = &connection;
  }
  absl::flat_hash_set<ConnectionKey> still_closing;
  std::vector<MisuseDetector::Use> uses;
  for (ConnectionCalls& calls : CountOpenCalls()) {
    // Others are of other servers of this process.
    const auto found = by_key.find(calls.connection);
    if (found == by_key.end()) continue;
    if (closing_.contains(calls.connection)) {
      still_closing.insert(calls.connection);
      continue;
    }
    uses.push_back(
        {.calls = std::move(calls), .bytes = BytesReceived(found->second->fd)});
  }
  const std::vector<MisuseDetector::Finding> findings =
      detector_.Check(uses, resident_bytes);
  if (still_closing.size() < closing_.size() ||
      detector_.heavy_connection_ended()) {
    ticks_until_return_ = kTicksUntilReturn;
    num_returns_ = 0;
  }
  closing_ = std::move(still_closing);
  for (const MisuseDetector::Finding& finding : findings) {
    const ConnectionLimiter::Connection& connection =
        *by_key[finding.connection];
    const std::string peer = PeerOf(connection.fd);
    // Counted before the client can notice.
    ++num_closed_;
    if (!Close(connection)) {
      --num_closed_;
      continue;
    }
    closing_.insert(finding.connection);
    if (!log_limiter_.ShouldLog(now)) continue;
    telemetry::Log(
        telemetry::LogSeverity::kWarning,
        absl::StrCat("closed the connection of ", peer, " to ", server_, ": ",
                     finding.reason, " (docs/rpc/limits.md)"));
  }
}

}  // namespace hawser::net
