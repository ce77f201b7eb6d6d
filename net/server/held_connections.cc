#include "net/server/held_connections.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hawser::net {
namespace {

// What a client cannot change at will.
std::string_view FixedPartOf(std::string_view address) {
  constexpr std::string_view kMappedIpv4("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  constexpr size_t kIpv6Bytes = 16;
  constexpr size_t kPrefixBytes = 8;
  const bool is_ipv6 =
      address.size() == kIpv6Bytes && !address.starts_with(kMappedIpv4);
  return is_ipv6 ? address.substr(0, kPrefixBytes) : address;
}

}  // namespace

HeldConnections::~HeldConnections() {
  for (const auto& [name, address] : addresses_) {
    for (const Connection& connection : address.waiting) close(connection.fd);
  }
}

void HeldConnections::OnMisuse(std::string_view name,
                               async::MonotonicTime now) {
  Address& address = addresses_[std::string(FixedPartOf(name))];
  const absl::Duration wait =
      std::min(kMaxWait, std::ldexp(1, address.num_misuses) * kFirstWait);
  ++address.num_misuses;
  address.next_pass = async::AddDelay(now, wait);
  address.forgiven = async::AddDelay(now, kForgiven);
}

bool HeldConnections::Hold(std::string_view name, const Connection& connection,
                           async::MonotonicTime now) {
  const auto found = addresses_.find(std::string(FixedPartOf(name)));
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
