#include "rpc/grpc/tuning/malloc_tuning.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr int kNumBlocks = 8;
constexpr int64_t kPages = kNumBlocks * kBlockBytes / 4096;

int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Allocates, fills and frees memory as for a message; returns the number of
// page faults.
int64_t TakeAndFree() {
  const int64_t before = PageFaults();
  void* blocks[kNumBlocks];
  for (void*& block : blocks) {
    block = std::malloc(kBlockBytes);
    // Keeps the compiler from removing it.
    asm volatile("" : : "r"(std::memset(block, 1, kBlockBytes)) : "memory");
  }
  for (void* block : blocks) std::free(block);
  return PageFaults() - before;
}

TEST(MallocTuningTest, FreedMemoryIsNotReturnedToTheKernel) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a malloc of its own";
#endif
  TuneMalloc();
  TuneMalloc();
  // The same settings apply to the heap of another thread.
  std::thread([] {
    EXPECT_GE(TakeAndFree(), kPages / 2);
    EXPECT_LT(TakeAndFree(), kPages / 8);
  }).join();
}

}  // namespace
}  // namespace hawser::rpc
