#include "rpc/same_host/link_heap.h"

#include <cstddef>
#include <functional>
#include <optional>

#include "async/mutex.h"
#include "ipc/range_allocator.h"
#include "rpc/same_host/link_memory.h"
#include "tensor/device.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

std::optional<size_t> LinkHeap::Allocate(size_t bytes) {
  const async::MutexLock lock(&mutex_);
  if (closed_) return std::nullopt;
  return ranges_.Allocate(bytes);
}

void LinkHeap::Free(size_t offset, size_t bytes) {
  const async::MutexLock lock(&mutex_);
  ranges_.Free(offset, bytes);
}

tensor::StoragePtr LinkHeap::AllocateStorage(size_t bytes) {
  const size_t taken = ipc::RangeAllocator::RangeBytes(bytes);
  std::optional<size_t> offset;
  {
    const async::MutexLock lock(&mutex_);
    if (closed_ || bytes == 0 || taken > kHeapBytes / 2 - storage_bytes_) {
      return nullptr;
    }
    offset = ranges_.Allocate(bytes);
    if (!offset.has_value()) return nullptr;
    storage_bytes_ += taken;
  }
  return tensor::Storage::Wrap(
      At(*offset), bytes, tensor::kCpu,
      [heap = shared_from_this(), offset = *offset, bytes, taken] {
        const async::MutexLock lock(&heap->mutex_);
        heap->ranges_.Free(offset, bytes);
        heap->storage_bytes_ -= taken;
      });
}

void LinkHeap::Close() {
  const async::MutexLock lock(&mutex_);
  closed_ = true;
}

std::optional<size_t> LinkHeap::OffsetOf(const char* data, size_t size) const {
  const char* const begin = half_.heap.data();
  const char* const end = begin + kHeapBytes;
  if (std::less<>()(data, begin + kHeapBegin) || std::less<>()(end, data)) {
    return std::nullopt;
  }
  const auto offset = static_cast<size_t>(data - begin);
  if (size > kHeapBytes - offset) return std::nullopt;
  return offset;
}

}  // namespace hawser::rpc
