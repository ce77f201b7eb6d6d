#include "net/testing/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/check.h"

namespace hawser::net {
namespace {

constexpr size_t kMaxBytesHeld = 1 << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket of `family` connected to `address`; -1 if nothing serves there.
template <class Address>
int ConnectTo(int family, const Address& address) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

int ConnectTo(const std::variant<std::string, int>& server) {
  if (const int* const port = std::get_if<int>(&server)) {
    return ConnectTo(AF_INET, Loopback(*port));
  }
  const std::string& path = std::get<std::string>(server);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  HAWSER_CHECK(path.size() < sizeof(address.sun_path)) << path;
  std::memcpy(address.sun_path, path.data(), path.size());
  return ConnectTo(AF_UNIX, address);
}

// With RST where the transport has one.
void Break(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

}  // namespace

struct TcpProxy::Connection {
  // What was read and not written yet.
  struct Piece {
    absl::Time when;
    std::string bytes;
  };
  // One direction.
  struct Way {
    int from = -1;
    int to = -1;
    std::deque<Piece> pieces = {};
    size_t bytes_held = 0;
    // FIN came; it is passed on behind the last piece.
    bool at_end = false;
    // FIN was sent.
    bool ended = false;
  };

  Way ways[2];
};

TcpProxy::TcpProxy(std::string server_path)
    : TcpProxy(Server(std::move(server_path))) {}

TcpProxy::TcpProxy(int server_port) : TcpProxy(Server(server_port)) {}

TcpProxy::TcpProxy(Server server) : server_(std::move(server)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  HAWSER_CHECK(bind(listener_, generic, size) == 0 &&
               listen(listener_, SOMAXCONN) == 0 &&
               getsockname(listener_, generic, &size) == 0)
      << "cannot listen";
  port_ = ntohs(address.sin_port);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  HAWSER_CHECK(wake_ >= 0) << "cannot make an eventfd";
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  Wake();
  thread_.join();
  Reset();
  close(listener_);
  close(wake_);
}

std::string TcpProxy::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void TcpProxy::BlackHole(Direction direction, bool on) {
  async::MutexLock lock(&mutex_);
  black_hole_[static_cast<int>(direction)] = on;
  Wake();
}

void TcpProxy::SetServerPort(int server_port) {
  async::MutexLock lock(&mutex_);
  server_ = server_port;
}

void TcpProxy::Discard(Direction direction) {
  async::MutexLock lock(&mutex_);
  discard_[static_cast<int>(direction)] = true;
}

void TcpProxy::SetDelay(Direction direction, absl::Duration delay) {
  async::MutexLock lock(&mutex_);
  delay_[static_cast<int>(direction)] = delay;
}

void TcpProxy::Reset() {
  async::MutexLock lock(&mutex_);
  for (Connection& connection : connections_) {
    Break(connection.ways[0].from);
    Break(connection.ways[0].to);
  }
  connections_.clear();
  discard_[0] = discard_[1] = false;
  Wake();
}

void TcpProxy::HalfClose(Direction direction) {
  async::MutexLock lock(&mutex_);
  for (Connection& connection : connections_) {
    Connection::Way& way = connection.ways[static_cast<int>(direction)];
    shutdown(way.to, SHUT_WR);
    way.pieces.clear();
    way.at_end = way.ended = true;
  }
  Wake();
}

int TcpProxy::num_connections() const {
  async::MutexLock lock(&mutex_);
  return static_cast<int>(connections_.size());
}

void TcpProxy::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
}

void TcpProxy::AcceptLocked() {
  while (true) {
    const int client =
        accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    const int no_delay = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
    const int server = ConnectTo(server_);
    if (server < 0) {
      Break(client);
      continue;
    }
    connections_.push_back(
        {{{.from = client, .to = server}, {.from = server, .to = client}}});
  }
}

bool TcpProxy::MoveLocked(Connection& connection) {
  for (int i = 0; i < 2; ++i) {
    Connection::Way& way = connection.ways[i];
    if (black_hole_[i] || way.ended) continue;
    while (!way.at_end && way.bytes_held < kMaxBytesHeld) {
      char bytes[16384];
      const ssize_t count = recv(way.from, bytes, sizeof(bytes), 0);
      if (count < 0) {
        if (errno == EAGAIN) break;
        return false;
      }
      way.at_end = count == 0;
      if (count == 0) break;
      if (discard_[i]) continue;
      // Not before they came: they must not leave early.
      way.pieces.push_back(
          {absl::Now() + delay_[i], std::string(bytes, count)});
      way.bytes_held += count;
    }
    const absl::Time now = absl::Now();
    while (!way.pieces.empty() && way.pieces.front().when <= now) {
      std::string& bytes = way.pieces.front().bytes;
      const ssize_t count =
          send(way.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) {
        if (errno == EAGAIN) break;
        return false;
      }
      way.bytes_held -= count;
      bytes.erase(0, count);
      if (bytes.empty()) way.pieces.pop_front();
    }
    if (way.at_end && way.pieces.empty()) {
      shutdown(way.to, SHUT_WR);
      way.ended = true;
    }
  }
  return !(connection.ways[0].ended && connection.ways[1].ended);
}

// 1. Accepts, and moves what can be moved.
// 2. Waits for bytes, for room, for the time of the next piece, or to be told.
void TcpProxy::Run() {
  while (true) {
    std::vector<pollfd> wanted = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    absl::Time next = absl::InfiniteFuture();
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      AcceptLocked();
      for (auto it = connections_.begin(); it != connections_.end();) {
        if (MoveLocked(*it)) {
          ++it;
          continue;
        }
        Break(it->ways[0].from);
        Break(it->ways[0].to);
        it = connections_.erase(it);
      }
      const absl::Time now = absl::Now();
      for (const Connection& connection : connections_) {
        for (int i = 0; i < 2; ++i) {
          const Connection::Way& way = connection.ways[i];
          if (black_hole_[i] || way.ended) continue;
          if (!way.at_end && way.bytes_held < kMaxBytesHeld) {
            wanted.push_back({way.from, POLLIN, 0});
          }
          if (way.pieces.empty()) continue;
          if (way.pieces.front().when <= now) {
            wanted.push_back({way.to, POLLOUT, 0});
          } else {
            next = std::min(next, way.pieces.front().when);
          }
        }
      }
    }
    int milliseconds = -1;
    if (next != absl::InfiniteFuture()) {
      milliseconds = 1 + static_cast<int>(absl::ToInt64Milliseconds(std::max(
                             next - absl::Now(), absl::ZeroDuration())));
    }
    poll(wanted.data(), wanted.size(), milliseconds);
    uint64_t woken = 0;
    (void)!read(wake_, &woken, sizeof(woken));
  }
}

}  // namespace hawser::net
