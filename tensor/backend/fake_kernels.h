// Kernels of the fake device, which are those of the CPU, for tests.

#ifndef HAWSER_TENSOR_BACKEND_FAKE_KERNELS_H_
#define HAWSER_TENSOR_BACKEND_FAKE_KERNELS_H_

namespace hawser::tensor {

// Registers them for DeviceType::kCuda, for the rest of the process. Their
// tensors are those of RegisterFakeDevice (tensor/fake_device.h).
void RegisterFakeKernels();

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_BACKEND_FAKE_KERNELS_H_
