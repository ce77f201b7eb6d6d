#include "rref/user_table.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/check.h"

namespace hawser::rref {

namespace {

absl::Status ClosedError() {
  return absl::FailedPreconditionError(
      "the worker was shut down: its references can no longer be used");
}

}  // namespace

void UserTable::Effects::Append(Effects other) {
  std::move(other.messages.begin(), other.messages.end(),
            std::back_inserter(messages));
  std::move(other.completions.begin(), other.completions.end(),
            std::back_inserter(completions));
}

UserTable::UserTable(WorkerRun self, size_t tombstone_capacity)
    : self_(self), withdrawn_(tombstone_capacity) {}

void UserTable::AddUserLocked(ForkId fork, User user) {
  user.confirmed_future = user.confirmed.future();
  users_.emplace(fork, std::move(user));
}

async::Future<void> UserTable::StartCreation(RRefId rref, ForkId fork,
                                             WorkerRun owner) {
  async::MutexLock lock(&mutex_);
  if (closed_) return async::MakeReadyFuture<void>(ClosedError());
  User user;
  user.rref = rref;
  user.owner = owner;
  user.parent = self_;
  user.is_creation = true;
  AddUserLocked(fork, std::move(user));
  return users_.find(fork)->second.confirmed_future;
}

UserTable::Effects UserTable::FinishCreation(ForkId fork,
                                             const absl::Status& status) {
  Effects effects;
  async::MutexLock lock(&mutex_);
  auto it = users_.find(fork);
  if (it == users_.end() || it->second.settled) return effects;
  it->second.creation_unacknowledged = !status.ok();
  const absl::Status loss = it->second.loss;
  SettleLocked(fork, it->second, status.ok() ? loss : status, effects);
  return effects;
}

absl::StatusOr<UserTable::Received> UserTable::Receive(RRefId rref, ForkId fork,
                                                       WorkerRun owner,
                                                       WorkerRun parent) {
  async::MutexLock lock(&mutex_);
  if (closed_) return ClosedError();
  if (auto it = users_.find(fork); it != users_.end()) {
    // The same message twice: both handles name one copy.
    ++it->second.handles;
    return Received{it->second.confirmed_future, false};
  }
  if (withdrawn_.Contains(fork)) {
    return absl::AbortedError(absl::StrCat(
        "reference ", rref.ToString(), " arrived after its sender, worker ",
        parent.worker, ", had given it up: send it again"));
  }
  if (auto it = lost_.find(owner); it != lost_.end()) return it->second;
  User user;
  user.rref = rref;
  user.owner = owner;
  user.parent = parent;
  const bool from_owner = parent == owner;
  if (from_owner) {
    user.settled = true;
    user.confirmed_future = user.confirmed.future();
    user.confirmed.Set(absl::OkStatus());
    async::Future<void> confirmed = user.confirmed_future;
    users_.emplace(fork, std::move(user));
    return Received{std::move(confirmed), false};
  }
  AddUserLocked(fork, std::move(user));
  return Received{users_.find(fork)->second.confirmed_future, true};
}

UserTable::Effects UserTable::FinishRequest(ForkId fork,
                                            const absl::Status& status) {
  Effects effects;
  async::MutexLock lock(&mutex_);
  auto it = users_.find(fork);
  if (it == users_.end() || it->second.settled) return effects;
  it->second.unknown_to_owner = !status.ok();
  effects.messages.push_back(
      {Message::Kind::kChildAccept, it->second.parent, it->second.rref, fork});
  SettleLocked(fork, it->second, status, effects);
  return effects;
}

void UserTable::SettleLocked(ForkId fork, User& user,
                             const absl::Status& status, Effects& effects) {
  user.settled = true;
  if (user.error.ok()) user.error = status;
  effects.completions.emplace_back(std::move(user.confirmed), user.error);
  RemoveIfUnusedLocked(fork, effects);
}

absl::Status UserTable::AddChild(ForkId parent, ForkId child, WorkerRun to) {
  async::MutexLock lock(&mutex_);
  if (closed_) return ClosedError();
  auto it = users_.find(parent);
  HAWSER_CHECK(it != users_.end() && it->second.handles > 0)
      << "a reference was shared without holding it";
  if (!it->second.error.ok()) return it->second.error;
  if (auto lost = lost_.find(to); lost != lost_.end()) return lost->second;
  ++it->second.children;
  children_.emplace(child, Child{parent, to, generation_});
  return absl::OkStatus();
}

UserTable::Effects UserTable::AcceptChild(ForkId child) {
  Effects effects;
  async::MutexLock lock(&mutex_);
  auto it = children_.find(child);
  if (it == children_.end()) return effects;
  const ForkId parent = it->second.parent;
  children_.erase(it);
  --users_.find(parent)->second.children;
  RemoveIfUnusedLocked(parent, effects);
  return effects;
}

UserTable::Effects UserTable::Release(ForkId fork) {
  Effects effects;
  async::MutexLock lock(&mutex_);
  if (closed_) return effects;
  auto it = users_.find(fork);
  HAWSER_CHECK(it != users_.end() && it->second.handles > 0)
      << "a reference was released twice";
  --it->second.handles;
  RemoveIfUnusedLocked(fork, effects);
  return effects;
}

void UserTable::RemoveIfUnusedLocked(ForkId fork, Effects& effects) {
  auto it = users_.find(fork);
  const User& user = it->second;
  if (!user.settled || user.handles > 0 || user.children > 0) return;
  if (!user.unknown_to_owner) {
    effects.messages.push_back({user.creation_unacknowledged
                                    ? Message::Kind::kWithdrawCreation
                                    : Message::Kind::kUserDelete,
                                user.owner, user.rref, fork});
  }
  users_.erase(it);
}

bool UserTable::Withdraw(ForkId fork) {
  async::MutexLock lock(&mutex_);
  if (users_.contains(fork)) return true;
  withdrawn_.Add(fork);
  return false;
}

bool UserTable::IsWithdrawn(ForkId fork) const {
  async::MutexLock lock(&mutex_);
  return withdrawn_.Contains(fork);
}

UserTable::Effects UserTable::Close() {
  Effects effects;
  async::MutexLock lock(&mutex_);
  closed_ = true;
  children_.clear();
  for (auto& [fork, user] : users_) {
    if (!user.settled) {
      effects.completions.emplace_back(std::move(user.confirmed),
                                       ClosedError());
    }
    if (user.unknown_to_owner) continue;
    const bool acknowledged = user.settled && !user.creation_unacknowledged;
    effects.messages.push_back({acknowledged || user.parent != self_
                                    ? Message::Kind::kUserDelete
                                    : Message::Kind::kWithdrawCreation,
                                user.owner, user.rref, fork});
  }
  users_.clear();
  return effects;
}

absl::Status UserTable::Check(ForkId fork) const {
  async::MutexLock lock(&mutex_);
  if (closed_) return ClosedError();
  auto it = users_.find(fork);
  return it == users_.end() ? absl::OkStatus() : it->second.error;
}

std::vector<UserTable::PendingChild> UserTable::TakeStaleChildren() {
  async::MutexLock lock(&mutex_);
  std::vector<PendingChild> stale;
  for (const auto& [fork, child] : children_) {
    if (child.generation == generation_) continue;
    stale.push_back({users_.find(child.parent)->second.rref, fork, child.to});
  }
  ++generation_;
  return stale;
}

UserTable::Effects UserTable::OnWorkerLost(WorkerRun lost,
                                           const absl::Status& error) {
  async::MutexLock lock(&mutex_);
  lost_.emplace(lost, error);
  return LoseLocked(lost, error);
}

UserTable::Effects UserTable::OnWorkerUnknown(WorkerRun unknown,
                                              const absl::Status& error) {
  async::MutexLock lock(&mutex_);
  return LoseLocked(unknown, error);
}

UserTable::Effects UserTable::LoseLocked(WorkerRun gone,
                                         const absl::Status& error) {
  Effects effects;
  std::vector<ForkId> orphans;
  for (const auto& [fork, user] : users_) {
    if (user.owner == gone) orphans.push_back(fork);
  }
  for (const ForkId& fork : orphans) {
    User& user = users_.find(fork)->second;
    user.unknown_to_owner = true;
    if (user.is_creation && !user.settled) {
      if (user.loss.ok()) user.loss = error;
      continue;
    }
    if (user.error.ok()) user.error = error;
    if (!user.settled) {
      if (user.parent != self_) {
        effects.messages.push_back(
            {Message::Kind::kChildAccept, user.parent, user.rref, fork});
      }
      SettleLocked(fork, user, error, effects);
    } else {
      RemoveIfUnusedLocked(fork, effects);
    }
  }
  std::vector<std::pair<ForkId, ForkId>> dropped;
  for (const auto& [fork, child] : children_) {
    if (child.to == gone) dropped.emplace_back(fork, child.parent);
  }
  for (const auto& [fork, parent] : dropped) {
    children_.erase(fork);
    --users_.find(parent)->second.children;
    RemoveIfUnusedLocked(parent, effects);
  }
  return effects;
}

UserTable::Counts UserTable::counts() const {
  async::MutexLock lock(&mutex_);
  Counts counts;
  counts.users = users_.size();
  for (const auto& [fork, user] : users_) {
    if (!user.settled) ++counts.unconfirmed_users;
  }
  counts.pending_children = children_.size();
  counts.lost_workers = lost_.size();
  return counts;
}

}  // namespace hawser::rref
