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
      "the worker was shut down: its references cannot be used any more");
}

}  // namespace

void UserTable::Actions::Append(Actions other) {
  std::move(other.messages.begin(), other.messages.end(),
            std::back_inserter(messages));
  std::move(other.completions.begin(), other.completions.end(),
            std::back_inserter(completions));
}

UserTable::UserTable(rpc::WorkerRun self, size_t tombstone_capacity)
    : self_(self), withdrawn_(tombstone_capacity) {}

void UserTable::AddUserLocked(ForkId fork, User user) {
  user.confirmed_future = user.confirmed.future();
  // Ids of this worker are in the table only as it drew them: see Receive.
  HAWSER_CHECK(users_.emplace(fork, std::move(user)).second)
      << "fork " << fork.ToString() << " was drawn twice";
}

bool UserTable::IsOwnChildLocked(RRefId rref, ForkId fork,
                                 rpc::WorkerRun owner) const {
  auto child = children_.find(fork);
  if (child == children_.end() || child->second.to != self_) return false;
  const User& parent = users_.find(child->second.parent)->second;
  return parent.rref == rref && parent.owner == owner;
}

async::Future<void> UserTable::StartCreation(RRefId rref, ForkId fork,
                                             rpc::WorkerRun owner) {
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

UserTable::Actions UserTable::FinishCreation(ForkId fork,
                                             const absl::Status& status) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  auto it = users_.find(fork);
  if (it == users_.end() || it->second.settled) return actions;
  it->second.creation_unacknowledged = !status.ok();
  const absl::Status loss = it->second.loss;
  SettleLocked(fork, it->second, status.ok() ? loss : status, actions);
  return actions;
}

absl::StatusOr<UserTable::ReceivedFork> UserTable::Receive(
    RRefId rref, ForkId fork, rpc::WorkerRun owner, rpc::WorkerRun parent) {
  async::MutexLock lock(&mutex_);
  if (closed_) return ClosedError();
  if (auto it = users_.find(fork); it != users_.end()) {
    User& user = it->second;
    if (user.rref != rref || user.owner != owner || user.parent != parent ||
        user.is_creation) {
      return absl::InvalidArgumentError(absl::StrCat(
          "reference ", rref.ToString(), " arrived from worker ",
          parent.id.value(), " as fork ", fork.ToString(),
          ", which this worker has of reference ", user.rref.ToString()));
    }
    // A repeated message: both handles share one copy.
    ++user.handles;
    return ReceivedFork{user.confirmed_future, false};
  }
  if (withdrawn_.Contains(fork)) {
    return absl::AbortedError(absl::StrCat(
        "reference ", rref.ToString(), " arrived after its sender, worker ",
        parent.id.value(), ", had withdrawn it: send it again"));
  }
  if (auto it = lost_.find(owner); it != lost_.end()) return it->second;
  // Otherwise its id could be one that this worker draws later.
  if (parent == self_ && !IsOwnChildLocked(rref, fork, owner)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reference ", rref.ToString(), " arrived as fork ", fork.ToString(),
        ", which this worker, ", self_.id.value(), ", did not send"));
  }
  User user;
  user.rref = rref;
  user.owner = owner;
  user.parent = parent;
  const bool from_owner = parent == owner;
  if (from_owner) {
    user.settled = true;
    user.confirmed.Set(absl::OkStatus());
  }
  AddUserLocked(fork, std::move(user));
  return ReceivedFork{users_.find(fork)->second.confirmed_future, !from_owner};
}

UserTable::Actions UserTable::FinishRequest(ForkId fork,
                                            const absl::Status& status) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  auto it = users_.find(fork);
  if (it == users_.end() || it->second.settled) return actions;
  it->second.unknown_to_owner = !status.ok();
  actions.messages.push_back(
      {Message::Kind::kChildAccept, it->second.parent, it->second.rref, fork});
  SettleLocked(fork, it->second, status, actions);
  return actions;
}

void UserTable::SettleLocked(ForkId fork, User& user,
                             const absl::Status& status, Actions& actions) {
  user.settled = true;
  if (user.error.ok()) user.error = status;
  actions.completions.emplace_back(std::move(user.confirmed), user.error);
  RemoveIfUnusedLocked(fork, actions);
}

absl::Status UserTable::AddChild(ForkId parent, ForkId child,
                                 rpc::WorkerRun to) {
  async::MutexLock lock(&mutex_);
  if (closed_) return ClosedError();
  auto it = users_.find(parent);
  HAWSER_CHECK(it != users_.end() && it->second.handles > 0)
      << "a reference was shared that this worker does not hold";
  if (!it->second.error.ok()) return it->second.error;
  if (auto lost = lost_.find(to); lost != lost_.end()) return lost->second;
  ++it->second.children;
  children_.emplace(child, Child{parent, to, generation_});
  return absl::OkStatus();
}

UserTable::Actions UserTable::AcceptChild(ForkId child, rpc::WorkerRun to) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  auto it = children_.find(child);
  if (it == children_.end() || it->second.to != to) return actions;
  const ForkId parent = it->second.parent;
  children_.erase(it);
  --users_.find(parent)->second.children;
  RemoveIfUnusedLocked(parent, actions);
  return actions;
}

UserTable::Actions UserTable::Release(ForkId fork) {
  Actions actions;
  async::MutexLock lock(&mutex_);
  if (closed_) return actions;
  auto it = users_.find(fork);
  HAWSER_CHECK(it != users_.end() && it->second.handles > 0)
      << "a reference was released twice";
  --it->second.handles;
  RemoveIfUnusedLocked(fork, actions);
  return actions;
}

void UserTable::RemoveIfUnusedLocked(ForkId fork, Actions& actions) {
  auto it = users_.find(fork);
  const User& user = it->second;
  if (!user.settled || user.handles > 0 || user.children > 0) return;
  if (!user.unknown_to_owner) {
    actions.messages.push_back({user.creation_unacknowledged
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

UserTable::Actions UserTable::Close() {
  Actions actions;
  async::MutexLock lock(&mutex_);
  closed_ = true;
  children_.clear();
  for (auto& [fork, user] : users_) {
    if (!user.settled) {
      actions.completions.emplace_back(std::move(user.confirmed),
                                       ClosedError());
    }
    if (user.unknown_to_owner) continue;
    const bool acknowledged = user.settled && !user.creation_unacknowledged;
    actions.messages.push_back({acknowledged || user.parent != self_
                                    ? Message::Kind::kUserDelete
                                    : Message::Kind::kWithdrawCreation,
                                user.owner, user.rref, fork});
  }
  users_.clear();
  return actions;
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

UserTable::Actions UserTable::OnWorkerLost(rpc::WorkerRun lost,
                                           const absl::Status& error) {
  async::MutexLock lock(&mutex_);
  lost_.emplace(lost, error);
  return LoseLocked(lost, error);
}

UserTable::Actions UserTable::OnWorkerUnknown(rpc::WorkerRun unknown,
                                              const absl::Status& error) {
  async::MutexLock lock(&mutex_);
  return LoseLocked(unknown, error);
}

UserTable::Actions UserTable::LoseLocked(rpc::WorkerRun departed,
                                         const absl::Status& error) {
  Actions actions;
  std::vector<ForkId> orphans;
  for (const auto& [fork, user] : users_) {
    if (user.owner == departed) orphans.push_back(fork);
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
        actions.messages.push_back(
            {Message::Kind::kChildAccept, user.parent, user.rref, fork});
      }
      SettleLocked(fork, user, error, actions);
    } else {
      RemoveIfUnusedLocked(fork, actions);
    }
  }
  std::vector<std::pair<ForkId, ForkId>> dropped;
  for (const auto& [fork, child] : children_) {
    if (child.to == departed) dropped.emplace_back(fork, child.parent);
  }
  for (const auto& [fork, parent] : dropped) {
    children_.erase(fork);
    --users_.find(parent)->second.children;
    RemoveIfUnusedLocked(parent, actions);
  }
  return actions;
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
