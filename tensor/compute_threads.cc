#include "tensor/compute_threads.h"

#include <atomic>

#include "async/check.h"

namespace hawser::tensor {
namespace {

std::atomic<int> compute_threads{1};

}  // namespace

int ComputeThreads() { return compute_threads.load(std::memory_order_relaxed); }

void SetComputeThreads(int threads) {
  HAWSER_CHECK(threads >= 1) << threads << " threads";
  compute_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace hawser::tensor
