// The caching allocator of host memory.
//
// Sizes are rounded up to classes. A freed block of up to 1 MiB goes to a small
// stack of the freeing thread, without a lock; excess blocks and larger blocks
// go to a list shared by all threads. Blocks above the largest class (1 GiB)
// are not cached. When the shared list exceeds its limit, the least recently
// used classes are returned to the system. Blocks of 2 MiB and more are mapped
// at huge-page boundaries.

#ifndef HAWSER_TENSOR_MEMORY_CPU_ALLOCATOR_H_
#define HAWSER_TENSOR_MEMORY_CPU_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "tensor/memory/allocator.h"
#include "tensor/memory/poison.h"
#include "tensor/memory/size_class.h"

namespace hawser::tensor::internal {

class ThreadBlockCache;

class CachingCpuAllocator final : public Allocator {
 public:
  // The allocator of this process, shared by all its workers.
  static CachingCpuAllocator& Get();

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Deallocate(void* block, size_t bytes) override;
  AllocatorStats stats() const override;
  void Trim() override;

  void SetCacheLimit(int64_t bytes);

  // Allocate() and Deallocate() without the thread's cache; null if out of
  // memory.
  void* AllocateShared(size_t bytes);
  void DeallocateShared(void* block, size_t bytes);

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

  void* AllocateFromSystem(size_t bytes, size_t block_bytes);
  void FreeToSystem(void* block, size_t block_bytes);
  void FreeToSystem(const std::vector<FreeBlock>& blocks);

  // Returns a cached block, or null.
  void* TakeShared(SizeClass size_class);
  // Caches `count` blocks and frees blocks above the limit.
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

// The blocks cached by one thread. Used only by its thread, except for bytes(),
// which any thread may read.
class ThreadBlockCache {
 public:
  // Returns the cache of the calling thread, created on first use. Null while
  // the thread exits, because other thread-local objects may outlive the cache.
  static ThreadBlockCache* Get() {
    if (current_ != nullptr) [[likely]]
      return current_;
    return Make();
  }

  explicit ThreadBlockCache(CachingCpuAllocator* allocator);
  ~ThreadBlockCache();
  ThreadBlockCache(const ThreadBlockCache&) = delete;
  ThreadBlockCache& operator=(const ThreadBlockCache&) = delete;

  // Returns a block of that class, or null if none is cached.
  void* Take(SizeClass size_class) {
    Bin& bin = bins_[size_class.index];
    if (bin.count == 0) [[unlikely]]
      return nullptr;
    AddBytes(-static_cast<int64_t>(size_class.block_bytes));
    return bin.blocks[--bin.count];
  }

  void Put(SizeClass size_class, void* block) {
    Bin& bin = bins_[size_class.index];
    const int64_t block_bytes = static_cast<int64_t>(size_class.block_bytes);
    if (bin.count == bin.capacity || bytes() + block_bytes > kMaxBytes ||
        epoch_ != allocator_->trim_epoch_.load(std::memory_order_relaxed))
        [[unlikely]] {
      PutSlowly(size_class, block);
      return;
    }
    bin.blocks[bin.count++] = block;
    AddBytes(block_bytes);
  }

  // Returns all blocks to the system if Trim() was called since the last check.
  void FollowTrim();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Owner;

  // Limits on the bytes of all blocks and on the blocks per class. The limit is
  // higher for blocks of up to 1 KiB, which every tensor needs.
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;
  static constexpr int kSmallClasses = 12;
  static constexpr int kSmallBlocks = 128;
  static constexpr int kBlocks = 16;

  struct Bin {
    int count = 0;
    int capacity = 0;
    void** blocks = nullptr;
  };

  static ThreadBlockCache* Make();

  void AddBytes(int64_t change) {
    bytes_.store(bytes() + change, std::memory_order_relaxed);
  }
  void PutSlowly(SizeClass size_class, void* block);
  // Moves `count` blocks of a class to the shared list.
  void Share(SizeClass size_class, int count);

  static constinit thread_local ThreadBlockCache* current_;
  static constinit thread_local bool thread_ends_;

  CachingCpuAllocator* const allocator_;
  uint64_t epoch_;
  std::atomic<int64_t> bytes_{0};
  std::array<Bin, kNumThreadSizeClasses> bins_;
  std::array<void*, kSmallClasses * kSmallBlocks +
                        (kNumThreadSizeClasses - kSmallClasses) * kBlocks>
      slots_;
};

inline constinit thread_local ThreadBlockCache* ThreadBlockCache::current_ =
    nullptr;
inline constinit thread_local bool ThreadBlockCache::thread_ends_ = false;

// Inline CachingCpuAllocator::Allocate() and Deallocate() for hot paths. Null
// if out of memory.
inline void* AllocateHostBlock(size_t bytes) {
  if (bytes <= kLargestThreadBlockBytes) {
    if (ThreadBlockCache* const cache = ThreadBlockCache::Get()) {
      if (void* const block = cache->Take(SizeClassOf(bytes))) {
        Unpoison(block, bytes);
        return block;
      }
    }
  }
  return CachingCpuAllocator::Get().AllocateShared(bytes);
}

inline void FreeHostBlock(void* block, size_t bytes) {
  if (bytes <= kLargestThreadBlockBytes) {
    if (ThreadBlockCache* const cache = ThreadBlockCache::Get()) {
      const SizeClass size_class = SizeClassOf(bytes);
      Poison(block, size_class.block_bytes);
      cache->Put(size_class, block);
      return;
    }
  }
  CachingCpuAllocator::Get().DeallocateShared(block, bytes);
}

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_MEMORY_CPU_ALLOCATOR_H_
