#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/device.h"
#include "tensor/memory/allocator.h"
#include "tensor/memory/device_allocators.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using async::StatusIs;
using testing::AnyOf;
using testing::HasSubstr;

using CudaAllocatorTest = CudaTest;

// Runs with and without a GPU.
TEST(CudaAllocatorErrorTest, MissingDeviceIsNamed) {
  for (const int index : {-1, 4096}) {
    EXPECT_THAT(AllocatorFor(Cuda(index)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AnyOf(HasSubstr(Cuda(index).ToString()),
                               HasSubstr("counting CUDA devices"))));
  }
  EXPECT_THAT(Tensor::TryEmpty({2}, {.device = Cuda(4096)}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CudaAllocatorTest, BlocksAreAlignedAndDistinct) {
  Allocator& allocator = **AllocatorFor(Cuda());
  std::vector<void*> blocks;
  const std::vector<size_t> sizes = {0, 0, 1, 3, 4096, size_t{1} << 22};
  for (const size_t bytes : sizes) {
    void* const block = *allocator.Allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kAllocationAlignment, 0u);
    for (void* const other : blocks) EXPECT_NE(block, other);
    blocks.push_back(block);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    allocator.Deallocate(blocks[i], sizes[i]);
  }
}

TEST_F(CudaAllocatorTest, FreedBlocksAreReused) {
  Allocator& allocator = **AllocatorFor(Cuda());
  const auto step = [&] {
    const Tensor a = Tensor::Empty({1 << 20}, {.device = Cuda()});
    const Tensor b = Tensor::Empty({1 << 18}, {.device = Cuda()});
  };
  step();
  const int64_t before = allocator.stats().system_allocations;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(allocator.stats().system_allocations, before);
}

TEST_F(CudaAllocatorTest, TrimReturnsCachedBlocks) {
  Allocator& allocator = **AllocatorFor(Cuda());
  constexpr int64_t kBytes = int64_t{1} << 26;
  {
    const Tensor t = Tensor::Empty({kBytes / 4}, {.device = Cuda()});
    EXPECT_GE(allocator.stats().reserved_bytes, kBytes);
  }
  EXPECT_GE(allocator.stats().reserved_bytes, kBytes);
  allocator.Trim();
  EXPECT_LT(allocator.stats().reserved_bytes, kBytes);
}

TEST_F(CudaAllocatorTest, OutOfMemoryIsATransientError) {
  EXPECT_THAT(
      Tensor::TryEmpty({int64_t{1} << 50}, {.device = Cuda()}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cuda:0")));
  // The next operation does not report the error.
  const Tensor t = Tensor::FromVector<float>({1, 2}, {2});
  EXPECT_EQ(t.To(Cuda())->ToVector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(CudaAllocatorTest, BlocksMayBeFreedByAnotherThread) {
  for (int i = 0; i < 8; ++i) {
    Tensor t = *Tensor::Full({1000}, i).To(Cuda());
    std::thread([t = std::move(t), i] {
      EXPECT_EQ(t.ToVector<float>(), std::vector<float>(1000, i));
    }).join();
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
