// Registry of the allocators of devices.

#ifndef HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_
#define HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/device.h"
#include "tensor/memory/allocator.h"

namespace hawser::tensor {

// The allocator of host memory. Keeps freed blocks by size, up to a stated
// limit, because the steps of a training loop ask for the same sizes again.
Allocator& CpuAllocator();

// How many bytes of freed blocks the CPU allocator keeps for all threads
// together, besides at most 16 MiB per thread. 1 GiB unless set.
void SetCpuCacheLimit(int64_t bytes);

// The allocator of `device`. kFailedPrecondition if nothing registered one.
absl::StatusOr<Allocator*> AllocatorFor(Device device);

// Makes `lookup(index)` the allocator of device `index` of a type other than
// kCpu. What it returns lives as long as the process.
using AllocatorLookup = absl::StatusOr<Allocator*> (*)(int index);
void RegisterAllocators(DeviceType type, AllocatorLookup lookup);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_
