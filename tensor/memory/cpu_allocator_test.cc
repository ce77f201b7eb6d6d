#include "tensor/memory/cpu_allocator.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::tensor::internal {
namespace {

using ::hawser::async::StatusIs;

class CpuAllocatorTest : public testing::Test {
 protected:
  void SetUp() override { allocator_.Trim(); }
  void TearDown() override {
    allocator_.SetCacheLimit(int64_t{1} << 30);
    EXPECT_EQ(InUse(), in_use_before_) << "blocks leaked";
  }

  int64_t InUse() const {
    const AllocatorStats stats = allocator_.stats();
    return stats.reserved_bytes - stats.cached_bytes;
  }
  int64_t SystemAllocations() const {
    return allocator_.stats().system_allocations;
  }

  CachingCpuAllocator& allocator_ = CachingCpuAllocator::Get();
  const int64_t in_use_before_ = InUse();
};

TEST_F(CpuAllocatorTest, BlocksAreAlignedAndWritable) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{4097},
        size_t{1} << 20, (size_t{1} << 20) + 1, (size_t{2} << 20) - 1,
        size_t{2} << 20, (size_t{9} << 20) + 5}) {
    void* const block = *allocator_.Allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kAllocationAlignment, 0u);
    std::memset(block, 0x5a, bytes);
    EXPECT_GE(InUse() - in_use_before_, static_cast<int64_t>(bytes));
    allocator_.Deallocate(block, bytes);
  }
}

TEST_F(CpuAllocatorTest, WarmLoopMakesNoSystemAllocations) {
  const std::vector<size_t> sizes = {12,      400,     70000,
                                     1 << 20, 3 << 20, 40 << 20};
  const auto step = [&] {
    std::vector<void*> blocks;
    for (const size_t bytes : sizes) {
      blocks.push_back(*allocator_.Allocate(bytes));
      static_cast<char*>(blocks.back())[bytes - 1] = 1;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      allocator_.Deallocate(blocks[i], sizes[i]);
    }
  };
  step();
  const int64_t before = SystemAllocations();
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(SystemAllocations(), before);
}

TEST_F(CpuAllocatorTest, BlocksFreedByAnotherThreadAreReused) {
  constexpr int kBlocks = 200;
  constexpr size_t kBytes = 5000;
  const auto allocate = [&] {
    std::vector<void*> blocks(kBlocks);
    for (void*& block : blocks) block = *allocator_.Allocate(kBytes);
    return blocks;
  };
  const auto free_elsewhere = [&](const std::vector<void*>& blocks) {
    std::thread([&] {
      for (void* const block : blocks) allocator_.Deallocate(block, kBytes);
    }).join();
  };
  free_elsewhere(allocate());
  const int64_t before = SystemAllocations();
  for (int i = 0; i < 20; ++i) free_elsewhere(allocate());
  EXPECT_EQ(SystemAllocations(), before);
}

TEST_F(CpuAllocatorTest, CacheStaysUnderItsLimit) {
  constexpr size_t kBytes = size_t{2} << 20;
  allocator_.SetCacheLimit(int64_t{8} << 20);
  std::vector<void*> blocks(16);
  for (void*& block : blocks) block = *allocator_.Allocate(kBytes);
  for (void* const block : blocks) allocator_.Deallocate(block, kBytes);
  EXPECT_LE(allocator_.stats().cached_bytes, int64_t{24} << 20);
  EXPECT_GE(allocator_.stats().cached_bytes, int64_t{8} << 20);
}

TEST_F(CpuAllocatorTest, LimitEvictsTheLeastRecentlyUsedSizes) {
  constexpr size_t kOld = size_t{4} << 20;
  constexpr size_t kNew = size_t{6} << 20;
  allocator_.SetCacheLimit(int64_t{8} << 20);
  allocator_.Deallocate(*allocator_.Allocate(kOld), kOld);
  allocator_.Deallocate(*allocator_.Allocate(kNew), kNew);
  const int64_t before = SystemAllocations();
  allocator_.Deallocate(*allocator_.Allocate(kNew), kNew);
  EXPECT_EQ(SystemAllocations(), before);
  allocator_.Deallocate(*allocator_.Allocate(kOld), kOld);
  EXPECT_EQ(SystemAllocations(), before + 1);
}

TEST_F(CpuAllocatorTest, TrimReturnsAllMemory) {
  allocator_.Deallocate(*allocator_.Allocate(100), 100);
  allocator_.Deallocate(*allocator_.Allocate(5 << 20), 5 << 20);
  EXPECT_GT(allocator_.stats().cached_bytes, 0);
  allocator_.Trim();
  EXPECT_EQ(allocator_.stats().cached_bytes, 0);
}

TEST_F(CpuAllocatorTest, OtherThreadsFollowTrimWhenTheyNextFree) {
  std::thread([&] {
    allocator_.Deallocate(*allocator_.Allocate(100), 100);
    std::thread([&] { allocator_.Trim(); }).join();
    EXPECT_GT(allocator_.stats().cached_bytes, 0);
    void* const block = *allocator_.Allocate(64);
    allocator_.Deallocate(block, 64);
    EXPECT_EQ(allocator_.stats().cached_bytes, 64);
  }).join();
}

TEST_F(CpuAllocatorTest, OutOfMemoryIsAnError) {
  for (const size_t bytes :
       {size_t{1} << 62, SIZE_MAX, SIZE_MAX - 100, size_t{1} << 50}) {
    EXPECT_THAT(allocator_.Allocate(bytes),
                StatusIs(absl::StatusCode::kResourceExhausted))
        << bytes;
  }
}

// A block released by an object that outlives the thread's cache.
struct LateRelease {
  void* block = nullptr;
  size_t bytes = 0;
  ~LateRelease() { CachingCpuAllocator::Get().Deallocate(block, bytes); }
};

TEST_F(CpuAllocatorTest, ThreadLocalObjectsMayOutliveTheCache) {
  std::thread([] {
    thread_local LateRelease late;
    late.bytes = 100;
    late.block = *CachingCpuAllocator::Get().Allocate(late.bytes);
  }).join();
}

// Threads pass random blocks to each other; each block holds its owner's mark.
TEST_F(CpuAllocatorTest, ThreadsNeverShareABlock) {
  constexpr int kThreads = 4;
  struct Slot {
    std::atomic<uint64_t*> block{nullptr};
  };
  std::vector<Slot> slots(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20000; ++i) {
        const size_t words = 1 + random() % 300;
        auto* block = static_cast<uint64_t*>(*allocator_.Allocate(8 * words));
        const uint64_t mark = random();
        block[0] = words;
        for (size_t w = 1; w < words; ++w) block[w] = mark;
        block = slots[random() % slots.size()].block.exchange(block);
        if (block == nullptr) continue;
        for (size_t w = 2; w < block[0]; ++w) ASSERT_EQ(block[w], block[1]);
        allocator_.Deallocate(block, 8 * block[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Slot& slot : slots) {
    if (uint64_t* block = slot.block) {
      allocator_.Deallocate(block, 8 * block[0]);
    }
  }
}

}  // namespace
}  // namespace hawser::tensor::internal
