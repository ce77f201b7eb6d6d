#include "rpc/testing/fakes/fake_sender_directory.h"

#include <utility>

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

void FakeSenderDirectory::FinishConfirm(absl::Status status) {
  auto done = std::move(confirms_.front());
  confirms_.pop_front();
  std::move(done)(std::move(status));
}

}  // namespace hawser::rpc
