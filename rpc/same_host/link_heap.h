// Memory in which one end of a same-host link keeps what its peer reads.

#ifndef HAWSER_RPC_SAME_HOST_LINK_HEAP_H_
#define HAWSER_RPC_SAME_HOST_LINK_HEAP_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "ipc/range_allocator.h"
#include "rpc/same_host/link_memory.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Ranges of the heap of the direction in which this end sends. The peer can
// also write them: what they contain may be any bytes when it is read here.
//
// Thread-safe.
class LinkHeap : public std::enable_shared_from_this<LinkHeap> {
 public:
  // `half` belongs to `memory`.
  LinkHeap(std::shared_ptr<LinkMemory> memory, LinkHalf& half)
      : memory_(std::move(memory)),
        half_(half),
        ranges_(kHeapBegin, kHeapBytes) {}

  // Returns the offset of `bytes` bytes, at least 1; nullopt if no range fits,
  // or after Close.
  std::optional<size_t> Allocate(size_t bytes);
  // Of a range that Allocate returned for as many bytes.
  void Free(size_t offset, size_t bytes);
  char* At(size_t offset) { return &half_.heap[offset]; }

  // Returns a range as storage, whose last handle frees it. Null if no range
  // fits, after Close, or if storage would take more than half of the heap: it
  // may be kept for long.
  tensor::StoragePtr AllocateStorage(size_t bytes);
  // Allocates no more: the peer may still read ranges that are free.
  void Close();
  // The offset of `size` bytes that are in the heap; otherwise nullopt.
  std::optional<size_t> OffsetOf(const char* data, size_t size) const;

 private:
  const std::shared_ptr<LinkMemory> memory_;
  LinkHalf& half_;
  async::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  ipc::RangeAllocator ranges_ ABSL_GUARDED_BY(mutex_);
  size_t storage_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_LINK_HEAP_H_
