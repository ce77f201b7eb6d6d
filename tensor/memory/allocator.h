// Allocators of tensor memory.

#ifndef HAWSER_TENSOR_MEMORY_ALLOCATOR_H_
#define HAWSER_TENSOR_MEMORY_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace hawser::tensor {

// Minimum alignment of every block, in bytes.
inline constexpr size_t kAllocationAlignment = 64;

struct AllocatorStats {
  // Bytes obtained from the system and not returned: in use or cached.
  int64_t reserved_bytes = 0;
  // Of these, bytes of freed blocks kept for reuse.
  int64_t cached_bytes = 0;
  // Number of blocks ever obtained from the system; constant in a warmed-up
  // loop.
  int64_t system_allocations = 0;
};

// Allocates uninitialised blocks of one device's memory. Thread-safe: any
// thread may free a block.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Returns at least `bytes` bytes, never null. kResourceExhausted if the
  // device is out of memory.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;

  // Frees a block returned by Allocate(bytes).
  virtual void Deallocate(void* block, size_t bytes) = 0;

  virtual AllocatorStats stats() const = 0;

  // Returns cached blocks to the system. Other threads release their cached
  // blocks when they next free one.
  virtual void Trim() = 0;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_ALLOCATOR_H_
