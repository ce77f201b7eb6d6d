#include "store/hash/lease_schedule.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hawser::store::internal {
namespace {

constexpr double kMaxExtension = 4;
// Healthy owners renew several times in a lifetime, so that a lease of this age
// in lifetimes is overdue.
constexpr double kOverdue = 1.0 / 3;
// A lease lives as long as this many gaps of which nine in ten were shorter:
// healthy owners renew six times in a lifetime.
constexpr double kLateGaps = 4;

// Returns the smallest element that is not less than `share` of the others.
double Quantile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() +
      static_cast<ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void LeaseSchedule::Renew(const std::string& key, absl::Duration lifetime) {
  const auto [it, added] = leases_.try_emplace(key);
  Lease& lease = it->second;
  lease.gap = added ? 0 : now_ - lease.renewed;
  lease.renewed = now_;
  // The current tick has partly passed.
  lease.lifetime =
      static_cast<uint64_t>(absl::Ceil(lifetime, kTick) / kTick) + 1;
  const uint64_t expiry = now_ + lease.lifetime;
  // The check that is scheduled already will find the renewal.
  if (!added && lease.due <= expiry) return;
  if (!added) due_.erase({lease.due, key});
  Schedule(key, lease, expiry);
}

void LeaseSchedule::End(const std::string& key) {
  const auto it = leases_.find(key);
  if (it == leases_.end()) return;
  due_.erase({it->second.due, key});
  leases_.erase(it);
}

void LeaseSchedule::Schedule(const std::string& key, Lease& lease,
                             uint64_t due) {
  lease.due = due;
  due_.emplace(due, key);
}

double LeaseSchedule::Extension() const {
  std::vector<double> ages;
  std::vector<double> gaps;
  ages.reserve(leases_.size());
  gaps.reserve(leases_.size());
  for (const auto& [key, lease] : leases_) {
    const auto lifetime = static_cast<double>(lease.lifetime);
    ages.push_back(static_cast<double>(now_ - lease.renewed) / lifetime);
    gaps.push_back(static_cast<double>(lease.gap) / lifetime);
  }
  return std::clamp(std::max(Quantile(ages, 0.25) / kOverdue,
                             Quantile(gaps, 0.9) * kLateGaps),
                    1.0, kMaxExtension);
}

std::vector<std::string> LeaseSchedule::Tick() {
  ++now_;
  std::vector<std::string> expired;
  double extension = 0;
  while (!due_.empty() && due_.begin()->first <= now_) {
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    Lease& lease = leases_.find(key)->second;
    const uint64_t age = now_ - lease.renewed;
    if (age < lease.lifetime) {
      Schedule(key, lease, lease.renewed + lease.lifetime);
      continue;
    }
    if (extension == 0) extension = Extension();
    if (static_cast<double>(age) <
        extension * static_cast<double>(lease.lifetime)) {
      Schedule(key, lease, now_ + 1);
    } else {
      expired.push_back(key);
    }
  }
  for (const std::string& key : expired) leases_.erase(key);
  return expired;
}

}  // namespace hawser::store::internal
