// Errors of the CUDA runtime as statuses, the device in use, and its stream.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_
#define HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "tensor/device.h"

namespace hawser::tensor::cuda {

// OK, or the runtime's text with `what` was being done:
//   kResourceExhausted   no memory on the device.
//   kFailedPrecondition  no such device, or no driver.
//   kInternal            anything else; an error of an earlier kernel shows up
//                        at a later call.
absl::Status CudaStatus(cudaError_t error, std::string_view what);

// The status of the kernel launch before it.
absl::Status LaunchStatus(std::string_view kernel);

// Makes `device` the current one of this thread, and the one before it again at
// the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
  int current_;
};

// All work on a device goes to its legacy default stream, whichever thread
// enqueues it, so that it runs in the order in which it was enqueued and a
// freed block may be handed out again at once.
inline constexpr cudaStream_t kStream = nullptr;

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_
