#include "collectives/gloo/step.h"

#include <set>

namespace hawser::collectives {

// The size is part of the slot: ranks that call different operations wait for
// each other, and do not overrun their memory.

void Step::Send(int to, ConstBytes data) {
  if (data.empty()) return;
  // Gloo takes memory to send as writable.
  const MutableBytes memory(const_cast<std::byte*>(data.data()), data.size());
  transfers_.emplace_back(mesh_, Transfer::Direction::kSend,
                          ranks_[static_cast<size_t>(to)], memory,
                          Transfer::Use::kCollective, data.size());
}

void Step::Receive(int from, MutableBytes data) {
  if (data.empty()) return;
  transfers_.emplace_back(mesh_, Transfer::Direction::kReceive,
                          ranks_[static_cast<size_t>(from)], data,
                          Transfer::Use::kCollective, data.size());
}

absl::Status Step::Wait() {
  for (Transfer& transfer : transfers_) {
    absl::Status status = transfer.Wait(deadline_);
    if (status.ok()) [[likely]]
      continue;
    return absl::IsDeadlineExceeded(status) && mesh_.failure().ok() ? FailLate()
                                                                    : status;
  }
  return absl::OkStatus();
}

absl::Status Step::FailLate() {
  std::set<int> missing;
  for (Transfer& transfer : transfers_) {
    if (!transfer.HasCompleted()) missing.insert(transfer.peer());
  }
  return mesh_.Fail(mesh_.LateError(missing));
}

}  // namespace hawser::collectives
