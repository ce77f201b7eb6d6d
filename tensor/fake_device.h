// Fake device cuda:0, whose memory is the host's, for tests without a GPU.

#ifndef HAWSER_TENSOR_FAKE_DEVICE_H_
#define HAWSER_TENSOR_FAKE_DEVICE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/memory/allocator.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// For RegisterAllocators(). kInvalidArgument for any index but 0.
absl::StatusOr<Allocator*> FakeDeviceAt(int index);

// For RegisterDeviceCopy().
absl::Status FakeDeviceCopy(Tensor& dest, const Tensor& source);

// Registers both for DeviceType::kCuda, for the rest of the process.
void RegisterFakeDevice();

// How many blocks of the device are allocated.
int NumFakeDeviceBlocks();

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_FAKE_DEVICE_H_
