// Device memory from the driver's stream-ordered pool. The pool caches freed
// blocks until Trim(), so that a training loop does not allocate.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/device.h"
#include "tensor/memory/allocator.h"
#include "tensor/memory/device_allocators.h"

namespace hawser::tensor::cuda {
namespace {

class CudaAllocator final : public Allocator {
 public:
  static absl::StatusOr<std::unique_ptr<CudaAllocator>> Create(int index) {
    const DeviceGuard guard(Cuda(index));
    cudaMemPool_t pool = nullptr;
    RETURN_IF_ERROR(CudaStatus(cudaDeviceGetDefaultMemPool(&pool, index),
                               "finding the device's memory pool"));
    uint64_t keep_everything = UINT64_MAX;
    RETURN_IF_ERROR(
        CudaStatus(cudaMemPoolSetAttribute(
                       pool, cudaMemPoolAttrReleaseThreshold, &keep_everything),
                   "configuring the device's memory pool"));
    return std::unique_ptr<CudaAllocator>(new CudaAllocator(index, pool));
  }

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    const DeviceGuard guard(Cuda(index_));
    void* block = nullptr;
    // An empty block must still have a unique address.
    const cudaError_t error =
        cudaMallocAsync(&block, bytes > 0 ? bytes : 1, kStream);
    if (error != cudaSuccess) [[unlikely]] {
      cudaGetLastError();  // Otherwise the next kernel would report it.
      return CudaStatus(error, absl::StrCat("allocating ", bytes, " bytes on ",
                                            Cuda(index_).ToString()));
    }
    const uint64_t reserved = Attribute(cudaMemPoolAttrReservedMemCurrent);
    if (reserved > reserved_.exchange(reserved, std::memory_order_relaxed)) {
      growths_.fetch_add(1, std::memory_order_relaxed);
    }
    return block;
  }

  void Deallocate(void* block, size_t) override {
    const DeviceGuard guard(Cuda(index_));
    cudaFreeAsync(block, kStream);
  }

  AllocatorStats stats() const override {
    const uint64_t reserved = Attribute(cudaMemPoolAttrReservedMemCurrent);
    const uint64_t used = Attribute(cudaMemPoolAttrUsedMemCurrent);
    return {.reserved_bytes = static_cast<int64_t>(reserved),
            .cached_bytes = static_cast<int64_t>(reserved - used),
            .system_allocations = growths_.load(std::memory_order_relaxed)};
  }

  void Trim() override {
    const DeviceGuard guard(Cuda(index_));
    // Blocks are free only after the stream has reached their release.
    cudaStreamSynchronize(kStream);
    cudaMemPoolTrimTo(pool_, 0);
    reserved_.store(Attribute(cudaMemPoolAttrReservedMemCurrent),
                    std::memory_order_relaxed);
  }

 private:
  CudaAllocator(int index, cudaMemPool_t pool) : index_(index), pool_(pool) {}

  uint64_t Attribute(cudaMemPoolAttr attribute) const {
    uint64_t value = 0;
    cudaMemPoolGetAttribute(pool_, attribute, &value);
    return value;
  }

  const int index_;
  const cudaMemPool_t pool_;
  // Bytes reserved by the pool when last read, and the number of times it had
  // grown.
  std::atomic<uint64_t> reserved_{0};
  std::atomic<int64_t> growths_{0};
};

absl::StatusOr<Allocator*> Lookup(int index) {
  static std::mutex mutex;
  // Never destroyed, since tensors in static objects may outlive everything
  // else.
  static auto& allocators = *new std::vector<std::unique_ptr<CudaAllocator>>;
  const std::scoped_lock lock(mutex);
  int count = static_cast<int>(allocators.size());
  if (count == 0) {
    RETURN_IF_ERROR(
        CudaStatus(cudaGetDeviceCount(&count), "counting CUDA devices"));
    allocators.resize(static_cast<size_t>(count));
  }
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("no device ", Cuda(index).ToString(),
                     ": this machine has ", count, " CUDA devices"));
  }
  auto& slot = allocators[static_cast<size_t>(index)];
  if (slot == nullptr) {
    ASSIGN_OR_RETURN(slot, CudaAllocator::Create(index));
  }
  return slot.get();
}

[[maybe_unused]] const bool registered = [] {
  RegisterAllocators(DeviceType::kCuda, Lookup);
  return true;
}();

}  // namespace
}  // namespace hawser::tensor::cuda
