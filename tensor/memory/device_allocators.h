// Registry of the allocators of devices.

#ifndef HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_
#define HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/device.h"
#include "tensor/memory/allocator.h"

namespace hawser::tensor {

// The allocator of host memory. Caches freed blocks by size, up to a limit,
// because the steps of a training loop request the same sizes again.
Allocator& CpuAllocator();

// Sets the limit on freed blocks that the CPU allocator caches for all threads
// together, in addition to at most 16 MiB per thread. The default is 1 GiB.
void SetCpuCacheLimit(int64_t bytes);

// Returns the allocator of `device`. kFailedPrecondition if none is registered.
absl::StatusOr<Allocator*> AllocatorFor(Device device);

// Registers `lookup(index)` as the allocator of device `index` of a type other
// than kCpu. The allocator must live until the process exits.
using AllocatorLookup = absl::StatusOr<Allocator*> (*)(int index);
void RegisterAllocators(DeviceType type, AllocatorLookup lookup);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_DEVICE_ALLOCATORS_H_
