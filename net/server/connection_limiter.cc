#include "net/server/connection_limiter.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

namespace hawser::net {
namespace {

// Without it, each new connection at a limit would cause a sweep.
constexpr std::chrono::milliseconds kSweepInterval(100);

std::optional<ino_t> InodeOf(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  return status.st_ino;
}

}  // namespace

std::string ConnectionLimiter::AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof(v4));
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr),
                       sizeof(v4.sin_addr));
  }
  if (peer.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &peer, sizeof(v6));
    return std::string(reinterpret_cast<const char*>(&v6.sin6_addr),
                       sizeof(v6.sin6_addr));
  }
  return "unix";
}

bool ConnectionLimiter::Add(int fd, const sockaddr_storage& peer,
                            async::MonotonicTime now) {
  const std::optional<ino_t> inode = InodeOf(fd);
  if (!inode.has_value()) return false;
  std::string address = AddressOf(peer);
  const auto full = [&] {
    return connections_.size() >= static_cast<size_t>(limits_.total) ||
           CountFrom(address) >= limits_.per_address;
  };
  if (connections_.size() >= sweep_at_) Sweep();
  if (full()) {
    if (now < sweep_after_) return false;
    sweep_after_ = now + kSweepInterval;
    Sweep();
    if (full()) return false;
  }
  ++by_address_[address];
  connections_.push_back({.fd = fd,
                          .inode = *inode,
                          .address = std::move(address),
                          .key = KeyOfPeer(peer)});
  return true;
}

bool ConnectionLimiter::IsSame(int fd, const Connection& connection) {
  return InodeOf(fd) == connection.inode;
}

void ConnectionLimiter::Sweep() {
  std::erase_if(connections_, [this](const Connection& connection) {
    if (IsSame(connection.fd, connection)) return false;
    auto it = by_address_.find(connection.address);
    if (--it->second == 0) by_address_.erase(it);
    return true;
  });
  sweep_at_ = std::max<size_t>(64, 2 * connections_.size());
}

int ConnectionLimiter::CountFrom(const std::string& address) const {
  auto it = by_address_.find(address);
  return it == by_address_.end() ? 0 : it->second;
}

}  // namespace hawser::net
