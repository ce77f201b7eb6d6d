#include "rpc/same_host/incoming_region.h"

#include <cstring>

#include "async/status_macros.h"

namespace hawser::rpc {

IncomingRegion::~IncomingRegion() {
  if (at_end_ != nullptr) std::move(at_end_)();
}

absl::Status IncomingRegion::Read(uint64_t address, void* to,
                                  size_t size) const {
  RETURN_IF_ERROR(copier_->Copy(size, [&](size_t offset, size_t count) {
    return peer_->Read(address + offset, static_cast<char*>(to) + offset,
                       count);
  }));
  return CheckSlot();
}

absl::Status IncomingRegion::ReadHeap(size_t offset, void* to,
                                      size_t size) const {
  std::memcpy(to, &half_.heap[offset], size);
  return CheckSlot();
}

absl::Status IncomingRegion::CheckSlot() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (slot_.load(std::memory_order_acquire) != value_) {
    return absl::UnavailableError("the peer has freed the message");
  }
  return absl::OkStatus();
}

}  // namespace hawser::rpc
