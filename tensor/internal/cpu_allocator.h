// The caching allocator of host memory.
//
// Sizes are rounded up to classes, four per doubling, so that at most a fifth
// of a block is unused. A freed block of up to 1 MiB goes to a small stack of
// the freeing thread, without a lock; what overflows there, and larger blocks,
// go to a list shared by all threads. Blocks beyond the largest class (1 GiB)
// are not kept. When the shared list exceeds its limit, the classes that went
// unused longest are given back to the system. Blocks of 2 MiB and more are
// mapped at huge-page boundaries.

#ifndef HAWSER_TENSOR_INTERNAL_CPU_ALLOCATOR_H_
#define HAWSER_TENSOR_INTERNAL_CPU_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "async/mutex.h"
#include "tensor/allocator.h"

namespace hawser::tensor::internal {

inline constexpr size_t kLargestThreadBlockBytes = size_t{1} << 20;
inline constexpr size_t kLargestCachedBlockBytes = size_t{1} << 30;

// A class index and the bytes of its blocks.
struct SizeClass {
  int index;
  size_t block_bytes;
};

// The smallest class that holds `bytes` <= kLargestCachedBlockBytes.
SizeClass SizeClassOf(size_t bytes);

// The bytes of a block of class `index`.
size_t SizeClassBytes(int index);

inline constexpr int kNumSizeClasses = 92;
inline constexpr int kNumThreadSizeClasses = 52;

class ThreadBlockCache;

class CachingCpuAllocator final : public Allocator {
 public:
  // The one of this process: memory belongs to the process, not to a worker.
  static CachingCpuAllocator& Get();

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Deallocate(void* block, size_t bytes) override;
  AllocatorStats stats() const override;
  void Trim() override;

  void SetCacheLimit(int64_t bytes);

 private:
  friend class ThreadBlockCache;

  struct SharedClass {
    std::vector<void*> blocks;
    uint64_t last_use = 0;
  };
  struct FreeBlock {
    void* block;
    size_t bytes;
  };

  CachingCpuAllocator() = default;

  absl::StatusOr<void*> AllocateFromSystem(size_t bytes, size_t block_bytes);
  void FreeToSystem(void* block, size_t block_bytes);
  void FreeToSystem(const std::vector<FreeBlock>& blocks);

  // A cached block, or null.
  void* TakeShared(SizeClass size_class);
  // Keeps `count` blocks, and frees what no longer fits under the limit.
  void PutShared(SizeClass size_class, void* const* blocks, int count);
  // Moves blocks out of the shared list until `limit` bytes are left.
  std::vector<FreeBlock> EvictLocked(int64_t limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AddThread(ThreadBlockCache* cache);
  void RemoveThread(ThreadBlockCache* cache);

  std::atomic<int64_t> reserved_bytes_{0};
  std::atomic<int64_t> system_allocations_{0};
  // Incremented by Trim(); a thread whose cache is older empties it.
  std::atomic<uint64_t> trim_epoch_{0};

  mutable async::Mutex mutex_;
  std::array<SharedClass, kNumSizeClasses> shared_ ABSL_GUARDED_BY(mutex_);
  int64_t shared_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t shared_limit_ ABSL_GUARDED_BY(mutex_) = int64_t{1} << 30;
  uint64_t use_counter_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ThreadBlockCache*> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_INTERNAL_CPU_ALLOCATOR_H_
