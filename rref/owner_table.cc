#include "rref/owner_table.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::rref {

void OwnerTable::Actions::Append(Actions other) {
  std::move(other.failed.begin(), other.failed.end(),
            std::back_inserter(failed));
  std::move(other.dropped.begin(), other.dropped.end(),
            std::back_inserter(dropped));
}

OwnerTable::OwnerTable(rpc::WorkerRun self, size_t tombstone_capacity,
                       const ReferenceLimits& limits)
    : self_(self),
      quota_(
          {.items = "references",
           .advice = "release some",
           .items_per_peer = {.max = limits.max_references_per_peer,
                              .option =
                                  "ReferenceLimits::max_references_per_peer"}}),
      withdrawn_(tombstone_capacity),
      ended_(tombstone_capacity) {}

absl::StatusOr<net::PerPeerQuota::Reservation> OwnerTable::AdmitLocked(
    const rpc::WorkerInfo& worker) {
  if (RunOf(worker) == self_) return net::PerPeerQuota::Reservation();
  return quota_.Admit(worker.name);
}

absl::StatusOr<net::PerPeerQuota::Reservation> OwnerTable::AdmitForkLocked(
    RRefId rref, const rpc::WorkerInfo& worker) {
  if (auto it = entries_.find(rref); it != entries_.end()) {
    auto awaiter = it->second.awaiters.find(RunOf(worker));
    if (awaiter != it->second.awaiters.end() && !awaiter->second.empty()) {
      return std::move(awaiter->second);
    }
  }
  return AdmitLocked(worker);
}

void OwnerTable::KeepAwaiting(Entry& entry, rpc::WorkerRun holder,
                              ForkState& removed) {
  if (entry.arrived) return;
  net::PerPeerQuota::Reservation& reservation = entry.awaiters[holder];
  if (reservation.empty()) reservation = std::move(removed.reservation);
}

void OwnerTable::EndAwaiting(Entry& entry) {
  entry.arrived = true;
  entry.awaiters.clear();
}

absl::StatusOr<std::shared_ptr<OwnerValue>> OwnerTable::Create(
    RRefId rref, ForkId fork, const rpc::WorkerInfo& holder) {
  async::MutexLock lock(&mutex_);
  if (withdrawn_.Contains(rref) || lost_.contains(RunOf(holder))) {
    return absl::AbortedError(
        absl::StrCat("creation of reference ", rref.ToString(),
                     " arrived after its caller, worker ", holder.id.value(),
                     ", had withdrawn it or was declared lost"));
  }
  if (auto it = entries_.find(rref);
      it != entries_.end() && it->second.arrived) {
    return absl::AlreadyExistsError(absl::StrCat(
        "creation of reference ", rref.ToString(), " arrived twice"));
  }
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   AdmitForkLocked(rref, holder));
  Entry& entry = entries_[rref];
  if (entry.value == nullptr) entry.value = std::make_shared<OwnerValue>();
  EndAwaiting(entry);
  entry.created = true;
  entry.forks.emplace(HeldFork{fork, RunOf(holder)},
                      ForkState{.reservation = std::move(reservation)});
  return entry.value;
}

absl::Status OwnerTable::Share(RRefId rref, ForkId fork,
                               const rpc::WorkerInfo& holder,
                               std::shared_ptr<OwnerValue> value) {
  async::MutexLock lock(&mutex_);
  if (auto it = lost_.find(RunOf(holder)); it != lost_.end()) return it->second;
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   AdmitForkLocked(rref, holder));
  Entry& entry = entries_[rref];
  if (entry.value == nullptr) {
    entry.value = std::move(value);
    entry.arrived = true;
  }
  entry.forks.emplace(HeldFork{fork, RunOf(holder)},
                      ForkState{.unacknowledged = true,
                                .generation = generation_,
                                .reservation = std::move(reservation)});
  return absl::OkStatus();
}

absl::Status OwnerTable::RequestFork(RRefId rref, ForkId fork,
                                     const rpc::WorkerInfo& holder) {
  async::MutexLock lock(&mutex_);
  if (lost_.contains(RunOf(holder))) {
    return absl::AbortedError(
        absl::StrCat("worker ", holder.id.value(), " was declared lost"));
  }
  ASSIGN_OR_RETURN(Entry* const entry, FindOrAwaitLocked(rref, holder));
  // A repeated request counts once.
  const HeldFork held{fork, RunOf(holder)};
  if (entry->forks.contains(held)) return absl::OkStatus();
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   AdmitForkLocked(rref, holder));
  entry->forks.emplace(held, ForkState{.reservation = std::move(reservation)});
  return absl::OkStatus();
}

OwnerTable::Actions OwnerTable::RemoveFork(RRefId rref, ForkId fork,
                                           rpc::WorkerRun holder) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  auto it = entries_.find(rref);
  if (it == entries_.end()) return actions;
  auto state = it->second.forks.find(HeldFork{fork, holder});
  if (state == it->second.forks.end()) return actions;
  KeepAwaiting(it->second, holder, state->second);
  it->second.forks.erase(state);
  EraseIfUnusedLocked(it, actions);
  return actions;
}

OwnerTable::Actions OwnerTable::WithdrawCreation(RRefId rref, ForkId fork) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  withdrawn_.Add(rref);
  auto it = entries_.find(rref);
  if (it == entries_.end()) return actions;
  if (!it->second.arrived) {
    EndAwaiting(it->second);
    actions.failed.emplace_back(
        it->second.value, absl::AbortedError(absl::StrCat(
                              "the creation of reference ", rref.ToString(),
                              " failed before it reached its owner")));
  }
  it->second.forks.erase(HeldFork{fork, rref.creator});
  EraseIfUnusedLocked(it, actions);
  return actions;
}

absl::StatusOr<std::shared_ptr<OwnerValue>> OwnerTable::Find(
    RRefId rref, const rpc::WorkerInfo& from) {
  async::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const Entry* const entry, FindOrAwaitLocked(rref, from));
  return entry->value;
}

absl::StatusOr<OwnerTable::Entry*> OwnerTable::FindOrAwaitLocked(
    RRefId rref, const rpc::WorkerInfo& from) {
  auto it = entries_.find(rref);
  if (it != entries_.end() &&
      (it->second.arrived || it->second.awaiters.contains(RunOf(from)))) {
    return &it->second;
  }
  // References created by this worker have had their values from the start, and
  // those created by a lost worker will never get one.
  if (it == entries_.end() &&
      (rref.creator == self_ || lost_.contains(rref.creator) ||
       withdrawn_.Contains(rref) || ended_.Contains(rref))) {
    return absl::NotFoundError(absl::StrCat(
        "the value of reference ", rref.ToString(),
        " no longer exists on its owner, worker ", self_.id.value()));
  }
  if (lost_.contains(RunOf(from))) {
    return absl::AbortedError(
        absl::StrCat("worker ", from.id.value(), " was declared lost"));
  }
  if (!no_more_awaited_.ok()) return no_more_awaited_;
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   AdmitLocked(from));
  Entry& entry = entries_[rref];
  if (entry.value == nullptr) entry.value = std::make_shared<OwnerValue>();
  entry.awaiters.emplace(RunOf(from), std::move(reservation));
  return &entry;
}

void OwnerTable::EraseIfUnusedLocked(Entries::iterator it, Actions& actions) {
  if (!it->second.arrived || !it->second.forks.empty()) return;
  // Find does not await references that this worker created.
  if ((it->second.created && it->first.creator != self_) ||
      it->second.lost_holder) {
    ended_.Add(it->first);
  }
  actions.dropped.push_back(std::move(it->second.value));
  entries_.erase(it);
}

std::vector<OwnerTable::Fork> OwnerTable::TakeStaleShares() {
  async::MutexLock lock(&mutex_);
  std::vector<Fork> stale;
  for (const auto& [rref, entry] : entries_) {
    for (const auto& [held, state] : entry.forks) {
      if (state.unacknowledged && state.generation != generation_) {
        stale.push_back({rref, held.fork, held.holder});
      }
    }
  }
  ++generation_;
  return stale;
}

void OwnerTable::AcknowledgeShare(RRefId rref, ForkId fork,
                                  rpc::WorkerRun holder) {
  async::MutexLock lock(&mutex_);
  auto it = entries_.find(rref);
  if (it == entries_.end()) return;
  auto state = it->second.forks.find(HeldFork{fork, holder});
  if (state != it->second.forks.end()) state->second.unacknowledged = false;
}

OwnerTable::Actions OwnerTable::OnWorkerLost(rpc::WorkerRun lost,
                                             const absl::Status& error) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  lost_.emplace(lost, error);
  std::vector<RRefId> touched;
  for (auto& [rref, entry] : entries_) {
    const size_t removed = absl::erase_if(
        entry.forks, [&](auto& fork) { return fork.first.holder == lost; });
    if (removed > 0) entry.lost_holder = true;
    entry.awaiters.erase(lost);
    const bool never_created =
        !entry.arrived && (rref.creator == lost ||
                           (entry.awaiters.empty() && entry.forks.empty()));
    if (never_created) {
      EndAwaiting(entry);
      actions.failed.emplace_back(entry.value, error);
    }
    if (never_created || removed > 0) touched.push_back(rref);
  }
  for (const RRefId& rref : touched) {
    EraseIfUnusedLocked(entries_.find(rref), actions);
  }
  return actions;
}

OwnerTable::Actions OwnerTable::StopAwaiting(const absl::Status& error) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  no_more_awaited_ = error;
  absl::erase_if(entries_, [&](auto& entry) {
    if (entry.second.arrived) return false;
    actions.failed.emplace_back(std::move(entry.second.value), error);
    return true;
  });
  return actions;
}

OwnerTable::Actions OwnerTable::Close(const absl::Status& error) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  for (auto& [rref, entry] : entries_) {
    if (!entry.arrived) actions.failed.emplace_back(entry.value, error);
    actions.dropped.push_back(std::move(entry.value));
  }
  entries_.clear();
  return actions;
}

std::vector<OwnerTable::Fork> OwnerTable::forks() const {
  async::MutexLock lock(&mutex_);
  std::vector<Fork> forks;
  for (const auto& [rref, entry] : entries_) {
    for (const auto& [held, state] : entry.forks) {
      forks.push_back({rref, held.fork, held.holder});
    }
  }
  return forks;
}

OwnerTable::Counts OwnerTable::counts() const {
  async::MutexLock lock(&mutex_);
  Counts counts;
  counts.owners = entries_.size();
  counts.lost_workers = lost_.size();
  for (const auto& [rref, entry] : entries_) {
    if (!entry.arrived) ++counts.awaited;
    counts.forks += entry.forks.size();
    for (const auto& [held, state] : entry.forks) {
      if (held.holder != self_) ++counts.remote_forks;
    }
  }
  return counts;
}

}  // namespace hawser::rref
