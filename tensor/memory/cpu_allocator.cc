#include "tensor/memory/cpu_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tensor/memory/huge_pages.h"

namespace hawser::tensor::internal {
namespace {

// As large as a user address space; avoids overflow in size arithmetic.
constexpr size_t kLargestRequestBytes = size_t{1} << 47;

// Sanitizers detect overruns of heap blocks, but not of mappings.
bool IsMapped([[maybe_unused]] size_t block_bytes) {
#ifdef HAWSER_TENSOR_ASAN
  return false;
#else
  return block_bytes >= kHugePageBytes;
#endif
}

// Size of the block for a request of `bytes`; 0 on overflow.
size_t BlockBytes(size_t bytes) {
  if (bytes <= kLargestCachedBlockBytes) return SizeClassOf(bytes).block_bytes;
  return (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
}

}  // namespace

CachingCpuAllocator& CachingCpuAllocator::Get() {
  // Never destroyed, since tensors in static objects may be destroyed at any
  // time.
  static CachingCpuAllocator* const allocator = new CachingCpuAllocator;
  return *allocator;
}

absl::StatusOr<void*> CachingCpuAllocator::Allocate(size_t bytes) {
  if (void* const block = AllocateHostBlock(bytes)) return block;
  return absl::ResourceExhaustedError(
      absl::StrCat("out of host memory: cannot allocate ", bytes, " bytes"));
}

void CachingCpuAllocator::Deallocate(void* block, size_t bytes) {
  FreeHostBlock(block, bytes);
}

void* CachingCpuAllocator::AllocateShared(size_t bytes) {
  if (bytes > kLargestCachedBlockBytes) {
    return AllocateFromSystem(bytes, BlockBytes(bytes));
  }
  const SizeClass size_class = SizeClassOf(bytes);
  if (void* const block = TakeShared(size_class)) {
    Unpoison(block, bytes);
    return block;
  }
  return AllocateFromSystem(bytes, size_class.block_bytes);
}

void CachingCpuAllocator::DeallocateShared(void* block, size_t bytes) {
  const size_t block_bytes = BlockBytes(bytes);
  if (block_bytes > kLargestCachedBlockBytes) {
    FreeToSystem(block, block_bytes);
    return;
  }
  Poison(block, block_bytes);
  PutShared(SizeClassOf(bytes), &block, 1);
}

void* CachingCpuAllocator::AllocateFromSystem(size_t bytes,
                                              size_t block_bytes) {
  if (block_bytes < bytes || block_bytes > kLargestRequestBytes) return nullptr;
  void* const block =
      IsMapped(block_bytes)
          ? MapHugePages(block_bytes)
          : std::aligned_alloc(kAllocationAlignment, block_bytes);
  if (block == nullptr) return nullptr;
  Poison(static_cast<char*>(block) + bytes, block_bytes - bytes);
  reserved_bytes_.fetch_add(static_cast<int64_t>(block_bytes),
                            std::memory_order_relaxed);
  system_allocations_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void CachingCpuAllocator::FreeToSystem(void* block, size_t block_bytes) {
  Unpoison(block, block_bytes);
  if (IsMapped(block_bytes)) {
    munmap(block, block_bytes);
  } else {
    std::free(block);
  }
  reserved_bytes_.fetch_sub(static_cast<int64_t>(block_bytes),
                            std::memory_order_relaxed);
}

void CachingCpuAllocator::FreeToSystem(const std::vector<FreeBlock>& blocks) {
  for (const FreeBlock& block : blocks) FreeToSystem(block.block, block.bytes);
}

void* CachingCpuAllocator::TakeShared(SizeClass size_class) {
  async::MutexLock lock(&mutex_);
  SharedClass& shared = shared_[size_class.index];
  shared.last_use = ++use_counter_;
  if (shared.blocks.empty()) return nullptr;
  void* const block = shared.blocks.back();
  shared.blocks.pop_back();
  shared_bytes_ -= static_cast<int64_t>(size_class.block_bytes);
  return block;
}

void CachingCpuAllocator::PutShared(SizeClass size_class, void* const* blocks,
                                    int count) {
  std::vector<FreeBlock> evicted;
  {
    async::MutexLock lock(&mutex_);
    SharedClass& shared = shared_[size_class.index];
    shared.last_use = ++use_counter_;
    shared.blocks.insert(shared.blocks.end(), blocks, blocks + count);
    shared_bytes_ += count * static_cast<int64_t>(size_class.block_bytes);
    if (shared_bytes_ > shared_limit_) evicted = EvictLocked(shared_limit_);
  }
  FreeToSystem(evicted);
}

std::vector<CachingCpuAllocator::FreeBlock> CachingCpuAllocator::EvictLocked(
    int64_t limit) {
  std::vector<FreeBlock> evicted;
  while (shared_bytes_ > limit) {
    int oldest = -1;
    for (int i = 0; i < kNumSizeClasses; ++i) {
      if (shared_[i].blocks.empty()) continue;
      if (oldest < 0 || shared_[i].last_use < shared_[oldest].last_use) {
        oldest = i;
      }
    }
    const size_t block_bytes = SizeClassBytes(oldest);
    std::vector<void*>& blocks = shared_[oldest].blocks;
    while (shared_bytes_ > limit && !blocks.empty()) {
      evicted.push_back({blocks.back(), block_bytes});
      blocks.pop_back();
      shared_bytes_ -= static_cast<int64_t>(block_bytes);
    }
  }
  return evicted;
}

void CachingCpuAllocator::AddThread(ThreadBlockCache* cache) {
  async::MutexLock lock(&mutex_);
  threads_.push_back(cache);
}

void CachingCpuAllocator::RemoveThread(ThreadBlockCache* cache) {
  async::MutexLock lock(&mutex_);
  std::erase(threads_, cache);
}

AllocatorStats CachingCpuAllocator::stats() const {
  AllocatorStats stats;
  stats.system_allocations = system_allocations_.load();
  async::MutexLock lock(&mutex_);
  stats.reserved_bytes = reserved_bytes_.load();
  stats.cached_bytes = shared_bytes_;
  for (const ThreadBlockCache* cache : threads_) {
    stats.cached_bytes += cache->bytes();
  }
  return stats;
}

void CachingCpuAllocator::Trim() {
  trim_epoch_.fetch_add(1);
  if (ThreadBlockCache* const cache = ThreadBlockCache::Get()) {
    cache->FollowTrim();
  }
  std::vector<FreeBlock> evicted;
  {
    async::MutexLock lock(&mutex_);
    evicted = EvictLocked(0);
  }
  FreeToSystem(evicted);
}

void CachingCpuAllocator::SetCacheLimit(int64_t bytes) {
  std::vector<FreeBlock> evicted;
  {
    async::MutexLock lock(&mutex_);
    shared_limit_ = std::max<int64_t>(bytes, 0);
    evicted = EvictLocked(shared_limit_);
  }
  FreeToSystem(evicted);
}

}  // namespace hawser::tensor::internal
