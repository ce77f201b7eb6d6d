#include "rpc/testing/fakes/fake_sender_directory.h"

#include "async/status_macros.h"

namespace hawser::rpc {

std::shared_ptr<Peer> FakeSenderDirectory::AddPeer(const WorkerInfo& worker) {
  auto peer = std::make_shared<Peer>(worker, /*header=*/"",
                                     /*transport=*/nullptr);
  peers_[worker.incarnation] = peer;
  return peer;
}

std::shared_ptr<Peer> FakeSenderDirectory::FindSender(
    Incarnation incarnation) const {
  const auto found = peers_.find(incarnation);
  return found == peers_.end() ? nullptr : found->second;
}

absl::StatusOr<std::optional<WorkerInfo>> FakeSenderDirectory::LookUp(
    std::string_view name) {
  looked_up.emplace_back(name);
  RETURN_IF_ERROR(store_);
  const auto found = records_.find(std::string(name));
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

}  // namespace hawser::rpc
