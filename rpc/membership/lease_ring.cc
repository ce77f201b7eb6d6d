#include "rpc/membership/lease_ring.h"

#include <algorithm>
#include <cstddef>

namespace hawser::rpc {
namespace {

// Number of leases without those of newcomers, and with them.
constexpr size_t kWatchedLeases = 2;
constexpr size_t kMaxWatchedLeases = 16;

}  // namespace

void LeaseRing::AddNewcomer(Incarnation worker, async::MonotonicTime now) {
  newcomers_.emplace(worker, now);
  leases_.reset();
}

void LeaseRing::AddSuspect(Incarnation worker) {
  if (suspects_.insert(worker).second) leases_.reset();
}

void LeaseRing::RemoveSuspect(Incarnation worker) {
  if (suspects_.erase(worker) > 0) leases_.reset();
}

std::vector<Incarnation> LeaseRing::Suspects() {
  absl::erase_if(suspects_, [this](Incarnation suspect) {
    return !view_.members().contains(suspect);
  });
  return {suspects_.begin(), suspects_.end()};
}

const std::vector<Incarnation>& LeaseRing::LeasesToWatch(
    async::MonotonicTime now) {
  const size_t settled = absl::erase_if(newcomers_, [&](const auto& newcomer) {
    return async::TimeBetween(newcomer.second, now) > settling_time_;
  });
  if (settled > 0) leases_.reset();
  if (!leases_.has_value()) leases_ = Choose();
  return *leases_;
}

std::vector<Incarnation> LeaseRing::MembersAfter(Incarnation worker) const {
  const auto found = view_.members().find(worker);
  if (found == view_.members().end()) return {};
  const auto begin = PositionOf(found->second);
  std::vector<const WorkerInfo*> after;
  for (const auto& [incarnation, member] : view_.members()) {
    if (incarnation != view_.self().incarnation && begin < PositionOf(member)) {
      after.push_back(&member);
    }
  }
  std::sort(after.begin(), after.end(),
            [this](const WorkerInfo* a, const WorkerInfo* b) {
              return PositionOf(*a) < PositionOf(*b);
            });
  std::vector<Incarnation> incarnations;
  incarnations.reserve(after.size());
  for (const WorkerInfo* member : after) {
    incarnations.push_back(member->incarnation);
  }
  return incarnations;
}

std::tuple<bool, WorkerId, uint64_t> LeaseRing::PositionOf(
    const WorkerInfo& worker) const {
  return {worker.id < view_.self().id, worker.id, ToNumber(worker.incarnation)};
}

std::vector<Incarnation> LeaseRing::Choose() const {
  if (!view_.is_member()) return {};
  std::vector<const WorkerInfo*> others;
  others.reserve(view_.members().size());
  for (const auto& [incarnation, worker] : view_.members()) {
    if (incarnation != view_.self().incarnation &&
        !suspects_.contains(incarnation)) {
      others.push_back(&worker);
    }
  }
  const size_t count = std::min(kMaxWatchedLeases, others.size());
  std::partial_sort(others.begin(), others.begin() + count, others.end(),
                    [this](const WorkerInfo* a, const WorkerInfo* b) {
                      return PositionOf(*a) < PositionOf(*b);
                    });
  std::vector<Incarnation> leases;
  size_t settled = 0;
  for (size_t i = 0; i < count && settled < kWatchedLeases; ++i) {
    leases.push_back(others[i]->incarnation);
    if (!newcomers_.contains(others[i]->incarnation)) ++settled;
  }
  return leases;
}

}  // namespace hawser::rpc
