#include "rref/control_channel.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::rref {

void ControlSender::Add(rpc::WorkerRun to, v1::RRefControlOperation operation) {
  async::MutexLock lock(&mutex_);
  if (closed_.contains(to)) return;
  peers_[to].queue.push_back(std::move(operation));
}

std::optional<v1::RRefControlRequest> ControlSender::NextBatch(
    rpc::WorkerRun to) {
  async::MutexLock lock(&mutex_);
  auto it = peers_.find(to);
  if (it == peers_.end()) return std::nullopt;
  Outbox& peer = it->second;
  if (peer.under_way > 0 || peer.queue.empty()) return std::nullopt;
  peer.under_way = std::min(peer.queue.size(), kMaxBatch);
  v1::RRefControlRequest request;
  request.set_first_sequence(peer.next_sequence);
  for (size_t i = 0; i < peer.under_way; ++i) {
    *request.add_operations() = peer.queue[i];
  }
  peer.next_sequence += peer.under_way;
  return request;
}

void ControlSender::Finish(rpc::WorkerRun to) {
  async::MutexLock lock(&mutex_);
  auto it = peers_.find(to);
  if (it == peers_.end()) return;
  Outbox& peer = it->second;
  peer.queue.erase(peer.queue.begin(), peer.queue.begin() + peer.under_way);
  peer.under_way = 0;
}

void ControlSender::Forget(rpc::WorkerRun to) {
  async::MutexLock lock(&mutex_);
  peers_.erase(to);
}

void ControlSender::Close(rpc::WorkerRun to) {
  async::MutexLock lock(&mutex_);
  closed_.insert(to);
  peers_.erase(to);
}

size_t ControlSender::pending() const {
  async::MutexLock lock(&mutex_);
  size_t pending = 0;
  for (const auto& [run, peer] : peers_) pending += peer.queue.size();
  return pending;
}

ControlReceiver::ControlReceiver() {
  async::MutexLock lock(&closed_inbox_->mutex);
  closed_inbox_->closed = true;
}

absl::StatusOr<v1::RRefControlReply> ControlReceiver::Receive(
    rpc::WorkerRun from, const v1::RRefControlRequest& request, Apply apply) {
  const auto num_operations = static_cast<size_t>(request.operations_size());
  if (num_operations > ControlSender::kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", from.id.value(), " sent ", num_operations,
                     " control operations in one batch; at most ",
                     ControlSender::kMaxBatch, " are allowed"));
  }
  const std::shared_ptr<Inbox> peer = FindInbox(from);
  async::MutexLock lock(&peer->mutex);
  // Also if the worker was lost while this batch waited for an earlier one.
  if (peer->closed) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", from.id.value(), " was declared lost"));
  }
  const uint64_t first = request.first_sequence();
  if (first <= peer->sequence) {
    // A repeated batch. The sender still waits only for the reply to the last
    // one.
    return first == peer->last_first_sequence ? peer->last_reply
                                              : v1::RRefControlReply();
  }
  if (first != peer->sequence + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", from.id.value(), " sent control operation ", first,
        ", but the last one that arrived is ", peer->sequence));
  }
  v1::RRefControlReply reply;
  for (const v1::RRefControlOperation& operation : request.operations()) {
    *reply.add_results() = apply(operation);
  }
  peer->sequence += num_operations;
  peer->last_first_sequence = first;
  peer->last_reply = reply;
  return reply;
}

void ControlReceiver::Close(rpc::WorkerRun from) {
  std::shared_ptr<Inbox> peer;
  {
    async::MutexLock lock(&mutex_);
    peer = std::exchange(peers_[from], closed_inbox_);
    if (peer != closed_inbox_) ++num_closed_;
  }
  if (peer == nullptr) return;
  // Waits for a batch that is being applied.
  async::MutexLock lock(&peer->mutex);
  peer->closed = true;
}

std::shared_ptr<ControlReceiver::Inbox> ControlReceiver::FindInbox(
    rpc::WorkerRun run) {
  async::MutexLock lock(&mutex_);
  std::shared_ptr<Inbox>& peer = peers_[run];
  if (peer == nullptr) peer = std::make_shared<Inbox>();
  return peer;
}

size_t ControlSender::num_peers() const {
  async::MutexLock lock(&mutex_);
  return peers_.size();
}

size_t ControlReceiver::num_peers() const {
  async::MutexLock lock(&mutex_);
  return peers_.size() - num_closed_;
}

}  // namespace hawser::rref
