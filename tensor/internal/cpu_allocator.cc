#include "tensor/internal/cpu_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAWSER_TENSOR_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAWSER_TENSOR_ASAN 1
#endif
#ifdef HAWSER_TENSOR_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) \
  (static_cast<void>(address), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) \
  (static_cast<void>(address), static_cast<void>(bytes))
#endif

namespace hawser::tensor::internal {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kPageBytes = 4096;
// Beyond what an address space holds; keeps size arithmetic from overflowing.
constexpr size_t kLargestRequestBytes = size_t{1} << 47;
// Blocks of one class in a thread's cache, and bytes of all of them.
constexpr int kThreadClassBlocks = 16;
constexpr int64_t kThreadCacheBytes = int64_t{16} << 20;

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("out of host memory: cannot allocate ", bytes, " bytes"));
}

// Anonymous memory whose start is a multiple of kHugePageBytes, or null.
void* MapHugePages(size_t bytes) {
  const size_t mapped_bytes = bytes + kHugePageBytes;
  void* const mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned =
      (begin + kHugePageBytes - 1) & ~uintptr_t{kHugePageBytes - 1};
  if (aligned > begin) munmap(mapped, aligned - begin);
  const size_t tail_bytes = begin + mapped_bytes - (aligned + bytes);
  void* const block = reinterpret_cast<void*>(aligned);
  if (tail_bytes > 0) munmap(static_cast<char*>(block) + bytes, tail_bytes);
  madvise(block, bytes, MADV_HUGEPAGE);  // Advice: works without it.
  return block;
}

// Sanitizers see past the end of heap blocks, not of mappings.
bool IsMapped([[maybe_unused]] size_t block_bytes) {
#ifdef HAWSER_TENSOR_ASAN
  return false;
#else
  return block_bytes >= kHugePageBytes;
#endif
}

// The bytes of the block that a request of `bytes` gets; 0 on overflow.
size_t BlockBytes(size_t bytes) {
  if (bytes <= kLargestCachedBlockBytes) return SizeClassOf(bytes).block_bytes;
  return (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
}

}  // namespace

SizeClass SizeClassOf(size_t bytes) {
  if (bytes <= 256) {
    const int index = bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
    return {index, static_cast<size_t>(index + 1) * 64};
  }
  // 2^(log - 1) < bytes <= 2^log, in four steps.
  const int log = std::bit_width(bytes - 1);
  const size_t base = size_t{1} << (log - 1);
  const int step_log = log - 3;
  const size_t step = (bytes - 1 - base) >> step_log;
  return {4 + (log - 9) * 4 + static_cast<int>(step),
          base + ((step + 1) << step_log)};
}

size_t SizeClassBytes(int index) {
  if (index < 4) return static_cast<size_t>(index + 1) * 64;
  const int log = 9 + (index - 4) / 4;
  const size_t step = static_cast<size_t>((index - 4) % 4);
  return (size_t{1} << (log - 1)) + ((step + 1) << (log - 3));
}

// The blocks one thread keeps for itself. Only its thread uses it, but for
// bytes(), which any thread may read.
class ThreadBlockCache {
 public:
  explicit ThreadBlockCache(CachingCpuAllocator* allocator)
      : allocator_(allocator), epoch_(allocator->trim_epoch_.load()) {
    allocator_->AddThread(this);
  }
  ~ThreadBlockCache() {
    for (int i = 0; i < kNumThreadSizeClasses; ++i) {
      Share({i, SizeClassBytes(i)}, bins_[i].count);
    }
    allocator_->RemoveThread(this);
  }

  void* Take(SizeClass size_class) {
    Bin& bin = bins_[size_class.index];
    if (bin.count == 0) return nullptr;
    AddBytes(-static_cast<int64_t>(size_class.block_bytes));
    return bin.blocks[--bin.count];
  }

  void Put(SizeClass size_class, void* block) {
    const int64_t block_bytes = static_cast<int64_t>(size_class.block_bytes);
    if (bytes() + block_bytes > kThreadCacheBytes) {
      allocator_->PutShared(size_class, &block, 1);
      return;
    }
    Bin& bin = bins_[size_class.index];
    if (bin.count == kThreadClassBlocks) {
      Share(size_class, kThreadClassBlocks / 2);
    }
    bin.blocks[bin.count++] = block;
    AddBytes(block_bytes);
  }

  // Empties the cache if Trim() was called since the last look.
  void FollowTrim(uint64_t epoch) {
    if (epoch == epoch_) [[likely]]
      return;
    epoch_ = epoch;
    for (int i = 0; i < kNumThreadSizeClasses; ++i) {
      const SizeClass size_class{i, SizeClassBytes(i)};
      while (void* block = Take(size_class)) {
        allocator_->FreeToSystem(block, size_class.block_bytes);
      }
    }
  }

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Bin {
    int count = 0;
    std::array<void*, kThreadClassBlocks> blocks;
  };

  void AddBytes(int64_t change) {
    bytes_.store(bytes() + change, std::memory_order_relaxed);
  }

  // Moves `count` blocks of a class to the shared list.
  void Share(SizeClass size_class, int count) {
    if (count == 0) return;
    Bin& bin = bins_[size_class.index];
    bin.count -= count;
    AddBytes(-count * static_cast<int64_t>(size_class.block_bytes));
    allocator_->PutShared(size_class, &bin.blocks[bin.count], count);
  }

  CachingCpuAllocator* const allocator_;
  uint64_t epoch_;
  std::atomic<int64_t> bytes_{0};
  std::array<Bin, kNumThreadSizeClasses> bins_;
};

namespace {

// Null before a thread's first use and after the thread's exit began.
constinit thread_local ThreadBlockCache* t_cache = nullptr;
constinit thread_local bool t_exiting = false;

struct ThreadBlockCacheOwner {
  std::unique_ptr<ThreadBlockCache> cache;
  ~ThreadBlockCacheOwner() {
    t_exiting = true;
    t_cache = nullptr;
  }
};

// This thread's cache, or null if the thread is exiting: tensors held by other
// thread-local objects may outlive the cache.
ThreadBlockCache* ThisThreadCache(CachingCpuAllocator* allocator) {
  if (t_cache != nullptr) [[likely]]
    return t_cache;
  if (t_exiting) return nullptr;
  thread_local ThreadBlockCacheOwner owner;
  owner.cache = std::make_unique<ThreadBlockCache>(allocator);
  t_cache = owner.cache.get();
  return t_cache;
}

}  // namespace

CachingCpuAllocator& CachingCpuAllocator::Get() {
  // Never destroyed: tensors in static objects may outlive any order.
  static CachingCpuAllocator* const allocator = new CachingCpuAllocator;
  return *allocator;
}

absl::StatusOr<void*> CachingCpuAllocator::Allocate(size_t bytes) {
  if (bytes > kLargestCachedBlockBytes) {
    return AllocateFromSystem(bytes, BlockBytes(bytes));
  }
  const SizeClass size_class = SizeClassOf(bytes);
  void* block = nullptr;
  if (size_class.block_bytes <= kLargestThreadBlockBytes) {
    if (ThreadBlockCache* cache = ThisThreadCache(this)) {
      cache->FollowTrim(trim_epoch_.load(std::memory_order_relaxed));
      block = cache->Take(size_class);
    }
  }
  if (block == nullptr) block = TakeShared(size_class);
  if (block == nullptr)
    return AllocateFromSystem(bytes, size_class.block_bytes);
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void CachingCpuAllocator::Deallocate(void* block, size_t bytes) {
  const size_t block_bytes = BlockBytes(bytes);
  if (block_bytes > kLargestCachedBlockBytes) {
    FreeToSystem(block, block_bytes);
    return;
  }
  ASAN_POISON_MEMORY_REGION(block, block_bytes);
  const SizeClass size_class = SizeClassOf(bytes);
  if (block_bytes <= kLargestThreadBlockBytes) {
    if (ThreadBlockCache* cache = ThisThreadCache(this)) {
      cache->FollowTrim(trim_epoch_.load(std::memory_order_relaxed));
      cache->Put(size_class, block);
      return;
    }
  }
  PutShared(size_class, &block, 1);
}

absl::StatusOr<void*> CachingCpuAllocator::AllocateFromSystem(
    size_t bytes, size_t block_bytes) {
  if (block_bytes < bytes || block_bytes > kLargestRequestBytes) {
    return OutOfMemory(bytes);
  }
  void* const block =
      IsMapped(block_bytes)
          ? MapHugePages(block_bytes)
          : std::aligned_alloc(kAllocationAlignment, block_bytes);
  if (block == nullptr) return OutOfMemory(bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes,
                            block_bytes - bytes);
  reserved_bytes_.fetch_add(static_cast<int64_t>(block_bytes),
                            std::memory_order_relaxed);
  system_allocations_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void CachingCpuAllocator::FreeToSystem(void* block, size_t block_bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, block_bytes);
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
  const uint64_t epoch = trim_epoch_.fetch_add(1) + 1;
  if (ThreadBlockCache* cache = ThisThreadCache(this)) {
    cache->FollowTrim(epoch);
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
