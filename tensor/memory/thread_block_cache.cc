#include <memory>

#include "tensor/memory/cpu_allocator.h"

namespace hawser::tensor::internal {

struct ThreadBlockCache::Owner {
  std::unique_ptr<ThreadBlockCache> cache;

  ~Owner() {
    thread_ends_ = true;
    current_ = nullptr;
  }
};

ThreadBlockCache* ThreadBlockCache::Make() {
  if (thread_ends_) return nullptr;
  thread_local Owner owner;
  owner.cache = std::make_unique<ThreadBlockCache>(&CachingCpuAllocator::Get());
  current_ = owner.cache.get();
  return current_;
}

ThreadBlockCache::ThreadBlockCache(CachingCpuAllocator* allocator)
    : allocator_(allocator), epoch_(allocator->trim_epoch_.load()) {
  void** slots = slots_.data();
  for (int i = 0; i < kNumThreadSizeClasses; ++i) {
    bins_[i].capacity = i < kSmallClasses ? kSmallBlocks : kBlocks;
    bins_[i].blocks = slots;
    slots += bins_[i].capacity;
  }
  allocator_->AddThread(this);
}

ThreadBlockCache::~ThreadBlockCache() {
  for (int i = 0; i < kNumThreadSizeClasses; ++i) {
    Share({i, SizeClassBytes(i)}, bins_[i].count);
  }
  allocator_->RemoveThread(this);
}

void ThreadBlockCache::PutSlowly(SizeClass size_class, void* block) {
  FollowTrim();
  const int64_t block_bytes = static_cast<int64_t>(size_class.block_bytes);
  if (bytes() + block_bytes > kMaxBytes) {
    allocator_->PutShared(size_class, &block, 1);
    return;
  }
  Bin& bin = bins_[size_class.index];
  if (bin.count == bin.capacity) Share(size_class, bin.capacity / 2);
  bin.blocks[bin.count++] = block;
  AddBytes(block_bytes);
}

void ThreadBlockCache::FollowTrim() {
  const uint64_t epoch = allocator_->trim_epoch_.load();
  if (epoch == epoch_) return;
  epoch_ = epoch;
  for (int i = 0; i < kNumThreadSizeClasses; ++i) {
    const SizeClass size_class{i, SizeClassBytes(i)};
    while (void* const block = Take(size_class)) {
      allocator_->FreeToSystem(block, size_class.block_bytes);
    }
  }
}

void ThreadBlockCache::Share(SizeClass size_class, int count) {
  if (count == 0) return;
  Bin& bin = bins_[size_class.index];
  bin.count -= count;
  AddBytes(-count * static_cast<int64_t>(size_class.block_bytes));
  allocator_->PutShared(size_class, &bin.blocks[bin.count], count);
}

}  // namespace hawser::tensor::internal
