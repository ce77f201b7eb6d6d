#include "rpc/peer_table.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace hawser::rpc {

void PeerTable::Insert(std::shared_ptr<Peer> peer) {
  // Destroyed after the lock is released.
  std::shared_ptr<Peer> old_name;
  std::shared_ptr<Peer> old_id;
  async::MutexLock lock(&mutex_);
  old_name = std::exchange(by_name_[peer->info().name], peer);
  old_id = std::exchange(by_id_[peer->info().id], std::move(peer));
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
    std::shared_ptr<Peer> peer = FindByName(worker->name);
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
