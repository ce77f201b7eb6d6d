#include "collectives/gloo/transfer.h"

#include <chrono>
#include <exception>

#include "absl/status/status.h"
#include "async/blocking_region.h"
#include "collectives/gloo/gloo_timeout.h"

namespace hawser::collectives {

Transfer::Transfer(Mesh& mesh, Direction direction, int peer, MutableBytes data,
                   Use use, uint64_t slot)
    : mesh_(mesh),
      direction_(direction),
      peer_(peer),
      buffer_(mesh.data_->createUnboundBuffer(data.data(), data.size())) {
  if (!mesh_.Register(this)) return;
  slot |= static_cast<uint64_t>(use) << 48;
  try {
    if (direction == Direction::kSend) {
      buffer_->send(peer, slot);
    } else {
      buffer_->recv(peer, slot);
    }
    posted_ = true;
  } catch (const std::exception&) {
    // Wait finds out why.
  }
}

Transfer::~Transfer() { mesh_.Unregister(this); }

bool Transfer::WaitFor(std::chrono::milliseconds timeout) {
  return direction_ == Direction::kSend ? buffer_->waitSend(nullptr, timeout)
                                        : buffer_->waitRecv(nullptr, timeout);
}

absl::Status Transfer::Wait(async::MonotonicTime deadline) {
  if (completed_) return absl::OkStatus();
  if (posted_) {
    const async::BlockingRegion region;
    try {
      completed_ = WaitFor(GlooTimeout(deadline));
      if (completed_) return absl::OkStatus();
    } catch (const std::exception&) {
      if (std::chrono::steady_clock::now() >= deadline &&
          mesh_.failure().ok()) {
        return absl::DeadlineExceededError("the deadline has passed");
      }
    }
  }
  return mesh_.ReasonOf(peer_);
}

bool Transfer::HasCompleted() {
  if (completed_ || !posted_) return completed_;
  try {
    completed_ = WaitFor(std::chrono::milliseconds(0));
  } catch (const std::exception&) {
  }
  return completed_;
}

void Transfer::Interrupt() {
  buffer_->abortWaitRecv();
  buffer_->abortWaitSend();
}

}  // namespace hawser::collectives
