#include "net/server/held_connections.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace hawser::net {

HeldConnections::~HeldConnections() {
  for (const auto& [name, address] : addresses_) {
    for (const Connection& connection : address.waiting) close(connection.fd);
  }
}

void HeldConnections::OnMisuse(const std::string& name,
                               async::MonotonicTime now) {
  Address& address = addresses_[name];
  const absl::Duration wait =
      std::min(kMaxWait, std::ldexp(1, address.num_misuses) * kFirstWait);
  ++address.num_misuses;
  address.next_pass = async::AddDelay(now, wait);
  address.forgiven = async::AddDelay(now, kForgiven);
}

bool HeldConnections::Hold(const std::string& name,
                           const Connection& connection,
                           async::MonotonicTime now) {
  const auto found = addresses_.find(name);
  if (found == addresses_.end()) return false;
  Address& address = found->second;
  if (address.waiting.empty() && now >= address.forgiven) {
    addresses_.erase(found);
    return false;
  }
  if (address.waiting.empty() && now >= address.next_pass) {
    address.next_pass = async::AddDelay(now, kSpacing);
    return false;
  }
  address.waiting.push_back(connection);
  return true;
}

int HeldConnections::PollTimeout(async::MonotonicTime now) const {
  absl::Duration least = absl::InfiniteDuration();
  for (const auto& [name, address] : addresses_) {
    if (address.waiting.empty()) continue;
    least = std::min(least, async::TimeBetween(now, address.next_pass));
  }
  if (least == absl::InfiniteDuration()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(
      std::max(least, absl::ZeroDuration()), absl::Milliseconds(1))));
}

std::vector<HeldConnections::Connection> HeldConnections::Take(
    async::MonotonicTime now) {
  std::vector<Connection> taken;
  for (auto& [name, address] : addresses_) {
    if (address.waiting.empty() || now < address.next_pass) continue;
    taken.push_back(address.waiting.front());
    address.waiting.pop_front();
    address.next_pass = async::AddDelay(now, kSpacing);
  }
  absl::erase_if(addresses_, [now](const auto& entry) {
    return entry.second.waiting.empty() && now >= entry.second.forgiven;
  });
  return taken;
}

}  // namespace hawser::net
