#include "tensor/fake_device.h"

#include <atomic>
#include <cstdlib>

#include "tensor/device.h"
#include "tensor/device_copy.h"
#include "tensor/internal/strided_copy.h"
#include "tensor/memory/device_allocators.h"

namespace hawser::tensor {
namespace {

class FakeDeviceAllocator final : public Allocator {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    ++live_blocks;
    return std::malloc(bytes + 1);
  }
  void Deallocate(void* block, size_t) override {
    --live_blocks;
    std::free(block);
  }
  AllocatorStats stats() const override { return {}; }
  void Trim() override {}

  std::atomic<int> live_blocks{0};
};

FakeDeviceAllocator& FakeDevice() {
  static FakeDeviceAllocator allocator;
  return allocator;
}

}  // namespace

absl::StatusOr<Allocator*> FakeDeviceAt(int index) {
  if (index == 0) return &FakeDevice();
  return absl::InvalidArgumentError("there is only cuda:0");
}

absl::Status FakeDeviceCopy(Tensor& dest, const Tensor& source) {
  internal::StridedCopy(dest.shape(),
                        {dest.raw_data(), dest.dtype(), dest.strides()},
                        {source.raw_data(), source.dtype(), source.strides()});
  return absl::OkStatus();
}

void RegisterFakeDevice() {
  RegisterAllocators(DeviceType::kCuda, &FakeDeviceAt);
  RegisterDeviceCopy(DeviceType::kCuda, &FakeDeviceCopy);
}

int NumFakeDeviceBlocks() { return FakeDevice().live_blocks; }

}  // namespace hawser::tensor
