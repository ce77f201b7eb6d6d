#include "rpc/peers/peer_table.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace hawser::rpc {

std::shared_ptr<Peer> PeerTable::Insert(std::shared_ptr<Peer> peer) {
  return Add(std::move(peer), /*announce=*/false);
}

std::shared_ptr<Peer> PeerTable::Announce(std::shared_ptr<Peer> peer) {
  return Add(std::move(peer), /*announce=*/true);
}

std::shared_ptr<Peer> PeerTable::Add(std::shared_ptr<Peer> peer,
                                     bool announce) {
  // Destroyed after the lock is released.
  std::vector<std::shared_ptr<Peer>> dropped;
  async::MutexLock lock(&mutex_);
  const auto [known, is_new] =
      by_incarnation_.try_emplace(peer->info().incarnation, Known{peer});
  if (!is_new) {
    dropped.push_back(std::move(peer));
    peer = known->second.peer;
  }
  if (announce) known->second.announced = true;
  for (std::shared_ptr<Peer>* place :
       {&by_name_[peer->info().name], &by_id_[peer->info().id]}) {
    if (announce && *place != nullptr && *place != peer) {
      const auto holder = by_incarnation_.find((*place)->info().incarnation);
      if (holder != by_incarnation_.end() && !holder->second.announced &&
          !(*place)->lost()) {
        continue;
      }
    }
    dropped.push_back(std::exchange(*place, peer));
  }
  for (auto it = by_incarnation_.begin(); it != by_incarnation_.end();) {
    const auto entry = it++;
    const std::shared_ptr<Peer>& other = entry->second.peer;
    if (!other->lost() || by_name_[other->info().name] == other) continue;
    dropped.push_back(other);
    by_incarnation_.erase(entry);
  }
  return peer;
}

std::shared_ptr<Peer> PeerTable::FindByIncarnation(
    Incarnation incarnation) const {
  async::MutexLock lock(&mutex_);
  auto it = by_incarnation_.find(incarnation);
  return it == by_incarnation_.end() ? nullptr : it->second.peer;
}

std::shared_ptr<Peer> PeerTable::FindByName(std::string_view name) const {
  async::MutexLock lock(&mutex_);
  auto it = by_name_.find(absl::string_view(name.data(), name.size()));
  return it == by_name_.end() ? nullptr : it->second;
}

std::shared_ptr<Peer> PeerTable::Find(const Destination& destination) const {
  if (const auto* name = std::get_if<std::string>(&destination.to())) {
    return FindByName(*name);
  }
  if (const auto* worker = std::get_if<WorkerInfo>(&destination.to())) {
    std::shared_ptr<Peer> peer = worker->name.empty()
                                     ? FindByIncarnation(worker->incarnation)
                                     : FindByName(worker->name);
    if (peer != nullptr && peer->info().incarnation != worker->incarnation) {
      return nullptr;
    }
    return peer;
  }
  async::MutexLock lock(&mutex_);
  auto it = by_id_.find(std::get<WorkerId>(destination.to()));
  return it == by_id_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<Peer>> PeerTable::All() const {
  std::vector<std::shared_ptr<Peer>> peers;
  {
    async::MutexLock lock(&mutex_);
    peers.reserve(by_name_.size());
    for (const auto& [name, peer] : by_name_) peers.push_back(peer);
  }
  std::sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) {
    return a->info().id < b->info().id;
  });
  return peers;
}

}  // namespace hawser::rpc
