// Memory of the peer, or of the heap that it writes, to which one of its
// messages refers.

#ifndef HAWSER_RPC_SAME_HOST_INCOMING_REGION_H_
#define HAWSER_RPC_SAME_HOST_INCOMING_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "ipc/parallel_copier.h"
#include "ipc/peer_process.h"
#include "rpc/same_host/link_memory.h"
#include "rpc/transport/payload.h"
#include "tensor/device.h"
#include "tensor/memory/allocator.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// The region of one message. It is valid as long as the message's slot in the
// shared memory keeps its value: the sender changes the slot before it frees
// the memory. Thread-safe.
class IncomingRegion {
 public:
  // `half` belongs to `memory` and is written by the peer; `slot` is less than
  // kNumSlots.
  IncomingRegion(std::shared_ptr<LinkMemory> memory,
                 std::shared_ptr<const ipc::PeerProcess> peer,
                 std::shared_ptr<ipc::ParallelCopier> copier, LinkHalf& half,
                 uint32_t slot, uint64_t value)
      : memory_(std::move(memory)),
        peer_(std::move(peer)),
        copier_(std::move(copier)),
        half_(half),
        slot_(half.slots[slot]),
        value_(value) {}
  ~IncomingRegion();

  // Sets an action for the destruction of this object. Call before sharing it.
  void AtEnd(absl::AnyInvocable<void() &&> at_end) {
    at_end_ = std::move(at_end);
  }

  // kUnavailable if the peer has ended or freed the message; the content of
  // `to` is then unspecified.
  absl::Status Read(uint64_t address, void* to, size_t size) const;
  // Same, of a range of the heap, which must be in it.
  absl::Status ReadHeap(size_t offset, void* to, size_t size) const;
  // Such a range of the heap. The content is unspecified once the peer has
  // freed the message, which it does not while this region lives.
  char* HeapAt(size_t offset) const { return &half_.heap[offset]; }

 private:
  // Of the bytes that were read before.
  absl::Status CheckSlot() const;

  const std::shared_ptr<LinkMemory> memory_;
  const std::shared_ptr<const ipc::PeerProcess> peer_;
  const std::shared_ptr<ipc::ParallelCopier> copier_;
  LinkHalf& half_;
  const std::atomic<uint64_t>& slot_;
  const uint64_t value_;
  absl::AnyInvocable<void() &&> at_end_;
};

// The bytes of a region from `address` on.
class RemoteChunk final : public RemoteBytes {
 public:
  RemoteChunk(std::shared_ptr<const IncomingRegion> region, uint64_t address)
      : region_(std::move(region)), address_(address) {}

  absl::Status Fetch(size_t offset, void* to, size_t size) const override {
    return region_->Read(address_ + offset, to, size);
  }

 private:
  const std::shared_ptr<const IncomingRegion> region_;
  const uint64_t address_;
};

// The bytes of the heap from `offset` on.
class HeapChunk final : public RemoteBytes {
 public:
  HeapChunk(std::shared_ptr<const IncomingRegion> region, size_t offset)
      : region_(std::move(region)), offset_(offset) {}

  absl::Status Fetch(size_t offset, void* to, size_t size) const override {
    return region_->ReadHeap(offset_ + offset, to, size);
  }
  tensor::StoragePtr InPlace(size_t offset, size_t size) const override {
    // The peer has chosen the offset.
    char* const data = region_->HeapAt(offset_ + offset);
    if (reinterpret_cast<uintptr_t>(data) % tensor::kAllocationAlignment != 0) {
      return nullptr;
    }
    return tensor::Storage::Wrap(data, size, tensor::kCpu,
                                 [region = region_] {});
  }

 private:
  const std::shared_ptr<const IncomingRegion> region_;
  const size_t offset_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_INCOMING_REGION_H_
