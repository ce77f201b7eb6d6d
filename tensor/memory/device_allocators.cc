#include "tensor/memory/device_allocators.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "tensor/memory/cpu_allocator.h"

namespace hawser::tensor {
namespace {

std::atomic<AllocatorLookup>& LookupOf(DeviceType type) {
  static std::atomic<AllocatorLookup> lookups[kNumDeviceTypes] = {};
  return lookups[static_cast<int>(type)];
}

}  // namespace

Allocator& CpuAllocator() { return internal::CachingCpuAllocator::Get(); }

void SetCpuCacheLimit(int64_t bytes) {
  internal::CachingCpuAllocator::Get().SetCacheLimit(bytes);
}

absl::StatusOr<Allocator*> AllocatorFor(Device device) {
  if (device.is_cpu()) return &CpuAllocator();
  const AllocatorLookup lookup = LookupOf(device.type).load();
  if (lookup == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no memory on ", device.ToString(),
                     ": this binary was built without that device"));
  }
  return lookup(device.index);
}

void RegisterAllocators(DeviceType type, AllocatorLookup lookup) {
  HAWSER_CHECK(type != DeviceType::kCpu) << "the CPU's allocator is built in";
  LookupOf(type).store(lookup);
}

}  // namespace hawser::tensor
