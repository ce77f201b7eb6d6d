#include "net/server/connection_watch.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
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
// Same, while alert.
constexpr int kAlertCostFraction = 50;
// How long the watch is alert: a client that floods does so at once, and one
// that was closed connects again.
constexpr absl::Duration kAlertAfterConnect = absl::Milliseconds(500);
constexpr absl::Duration kAlertAfterGrowth = absl::Seconds(2);
constexpr absl::Duration kAlertAfterMisuse = absl::Seconds(5);
// A connection with more bytes than this may have opened too many calls.
constexpr int64_t kReceiverBytes = int64_t{8} << 10;
// gRPC needs a while to release the calls of a connection that it has closed.
constexpr absl::Duration kFirstReturn = absl::Seconds(1);
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
bool EndConnection(const ConnectionLimiter::Connection& connection) {
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
                                 const ConnectionLimiter* connections,
                                 OnMisuse on_misuse,
                                 std::function<size_t()> resident_bytes)
    : detector_(limits),
      server_(std::move(server)),
      connections_(*connections),
      on_misuse_(std::move(on_misuse)),
      resident_bytes_(std::move(resident_bytes)) {}

int ConnectionWatch::PollTimeout(async::MonotonicTime now) const {
  if (connections_.num_known() == 0 && returns_left_ == 0) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(next_tick_ - now, async::MonotonicTime::duration::zero()));
  return static_cast<int>(wait.count());
}

void ConnectionWatch::OnPassed(const ConnectionKey& connection,
                               async::MonotonicTime now) {
  if (connection.empty()) return;
  young_[connection] = async::AddDelay(now, kAlertAfterConnect);
  next_tick_ = std::min(next_tick_, async::AddDelay(now, kAlertInterval));
}

void ConnectionWatch::BeAlertToAll(async::MonotonicTime now,
                                   absl::Duration time) {
  alert_to_all_until_ =
      std::max(alert_to_all_until_, async::AddDelay(now, time));
  next_tick_ = std::min(next_tick_, async::AddDelay(now, kAlertInterval));
}

void ConnectionWatch::Tick(async::MonotonicTime now) {
  if (now < next_tick_) return;
  absl::erase_if(young_,
                 [now](const auto& entry) { return now >= entry.second; });
  const bool alert = IsAlert(now);
  next_tick_ = async::AddDelay(now, alert ? kAlertInterval : kInterval);
  ReturnMemory(now);
  const std::chrono::nanoseconds before = ThreadTime();
  const size_t resident = resident_bytes_();
  const bool has_grown =
      resident >= examined_bytes_ + MisuseDetector::kGrowthBytes;
  if (has_grown || now >= next_examination_) {
    Examine(resident, now);
    next_examination_ = now + kExaminationInterval;
    if (closing_.empty()) {
      next_examination_ = std::max(
          next_examination_, now + kCostFraction * (ThreadTime() - before));
    }
    examined_bytes_ = resident;
    if (has_grown && detector_.has_suspect()) {
      BeAlertToAll(now, kAlertAfterGrowth);
    }
  } else if (alert) {
    ExamineReceivers(now);
  }
  if (alert) {
    next_tick_ = std::max(next_tick_,
                          now + kAlertCostFraction * (ThreadTime() - before));
  }
}

void ConnectionWatch::ReturnMemory(async::MonotonicTime now) {
  if (returns_left_ == 0 || now < next_return_) return;
  telemetry::ReturnFreedMemory();
  // Some is freed later.
  --returns_left_;
  next_return_ =
      async::AddDelay(now, kFirstReturn * (1 << (kReturns - returns_left_)));
}

ConnectionWatch::ConnectionByKey ConnectionWatch::ByKey() const {
  ConnectionByKey by_key;
  for (const Connection& connection : connections_.known()) {
    if (!connection.key.empty()) by_key[connection.key] = &connection;
  }
  return by_key;
}

void ConnectionWatch::ExamineReceivers(async::MonotonicTime now) {
  const bool all = now < alert_to_all_until_;
  absl::flat_hash_map<ConnectionKey, int64_t> received;
  absl::flat_hash_set<ConnectionKey> receivers;
  for (const Connection& connection : connections_.known()) {
    const ConnectionKey& key = connection.key;
    if (key.empty() || closing_.contains(key)) continue;
    if (!all && !young_.contains(key)) continue;
    const int64_t bytes = BytesReceived(connection.fd);
    int64_t counted_at = 0;
    const auto found = counted_at_.find(key);
    // Less than before: a new connection from the same port.
    if (found != counted_at_.end() && found->second <= bytes) {
      counted_at = found->second;
    }
    if (bytes >= counted_at + kReceiverBytes) {
      receivers.insert(key);
      counted_at = bytes;
    }
    received[key] = counted_at;
  }
  counted_at_ = std::move(received);
  if (receivers.empty()) return;
  const ConnectionByKey by_key = ByKey();
  for (const ConnectionCalls& calls : open_calls_.CountOf(receivers)) {
    const auto finding = detector_.CheckCalls(calls);
    const auto found = by_key.find(calls.connection);
    if (!finding.has_value() || found == by_key.end()) continue;
    Close(*finding, *found->second, now);
  }
}

void ConnectionWatch::Examine(size_t resident_bytes, async::MonotonicTime now) {
  const ConnectionByKey by_key = ByKey();
  absl::flat_hash_set<ConnectionKey> still_closing;
  std::vector<MisuseDetector::Use> uses;
  for (ConnectionCalls& calls : open_calls_.CountAll()) {
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
    returns_left_ = kReturns;
    next_return_ = async::AddDelay(now, kFirstReturn);
  }
  closing_ = std::move(still_closing);
  for (const MisuseDetector::Finding& finding : findings) {
    Close(finding, *by_key.find(finding.connection)->second, now);
  }
}

void ConnectionWatch::Close(const MisuseDetector::Finding& finding,
                            const Connection& connection,
                            async::MonotonicTime now) {
  const std::string peer = PeerOf(connection.fd);
  // Counted before the client can notice.
  ++num_closed_;
  if (!EndConnection(connection)) {
    --num_closed_;
    return;
  }
  closing_.insert(finding.connection);
  BeAlertToAll(now, kAlertAfterMisuse);
  on_misuse_(connection, now);
  if (!log_limiter_.ShouldLog(now)) return;
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat("closed the connection of ", peer, " to ", server_, ": ",
                   finding.reason, " (docs/rpc/limits.md)"));
}

}  // namespace hawser::net
