// Allocators of tensor memory.

#ifndef HAWSER_TENSOR_MEMORY_ALLOCATOR_H_
#define HAWSER_TENSOR_MEMORY_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace hawser::tensor {

// Every block is aligned to this many bytes at least.
inline constexpr size_t kAllocationAlignment = 64;

struct AllocatorStats {
  // Bytes obtained from the system and not given back: in use or cached.
  int64_t reserved_bytes = 0;
  // Of these, bytes of freed blocks kept for reuse.
  int64_t cached_bytes = 0;
  // How many blocks were ever obtained from the system; a loop that has warmed
  // up adds none.
  int64_t system_allocations = 0;
};

// Hands out blocks of one device's memory, uninitialised. Thread-safe: a block
// may be freed by another thread than the one that allocated it.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // At least `bytes` bytes, never null. kResourceExhausted if the device has
  // not that much.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;

  // Takes back a block of Allocate(bytes).
  virtual void Deallocate(void* block, size_t bytes) = 0;

  virtual AllocatorStats stats() const = 0;

  // Gives cached blocks back to the system. Blocks cached by other threads
  // follow when these threads next free one.
  virtual void Trim() = 0;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_ALLOCATOR_H_
