// Copies from or to a device other than the CPU.

#ifndef HAWSER_TENSOR_DEVICE_COPY_H_
#define HAWSER_TENSOR_DEVICE_COPY_H_

#include "absl/status/status.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// Copies the elements of `source` to `dest`, of the same shape. Each is on the
// registered device type or on the CPU. Strides and dtypes are arbitrary;
// elements are converted as by Tensor::CopyFrom(). Their memory does not
// overlap. A copy to the CPU is complete on return; any other copy may only be
// enqueued on the device's stream.
using DeviceCopy = absl::Status (*)(Tensor& dest, const Tensor& source);

// Registers `copy` for `type`, which must not be kCpu.
void RegisterDeviceCopy(DeviceType type, DeviceCopy copy);

// Copies with the registered function. kFailedPrecondition if there is none.
absl::Status CopyAcrossDevices(Tensor& dest, const Tensor& source);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_DEVICE_COPY_H_
