// Copies from or to a device other than the CPU.

#ifndef HAWSER_TENSOR_DEVICE_COPY_H_
#define HAWSER_TENSOR_DEVICE_COPY_H_

#include "absl/status/status.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// Writes the elements of `source` to `dest`, of the same shape. Both lie on the
// device type it is registered for or on the CPU; strides and dtypes are any,
// and converted as Tensor::CopyFrom() says. Their memory does not overlap. Into
// the CPU it is finished on return; else it may only be enqueued on the
// device's stream.
using DeviceCopy = absl::Status (*)(Tensor& dest, const Tensor& source);

// Makes `copy` that of `type`, which is not kCpu.
void RegisterDeviceCopy(DeviceType type, DeviceCopy copy);

// Copies by the registered function. kFailedPrecondition if there is none.
absl::Status CopyAcrossDevices(Tensor& dest, const Tensor& source);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_DEVICE_COPY_H_
