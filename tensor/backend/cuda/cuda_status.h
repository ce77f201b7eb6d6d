// CUDA runtime errors as statuses, the current device, and its stream.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_
#define HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "tensor/device.h"

namespace hawser::tensor::cuda {

// Converts a runtime error to a status whose message contains `what`:
//   kResourceExhausted   the device is out of memory.
//   kFailedPrecondition  the device or the driver is missing.
//   kInternal            anything else; an error of an earlier kernel is
//                        reported by a later call.
absl::Status CudaStatus(cudaError_t error, std::string_view what);

// Returns the status of the preceding kernel launch.
absl::Status LaunchStatus(std::string_view kernel);

// Makes `device` the current device of this thread; the destructor restores the
// previous one.
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

// All threads enqueue their work for a device on its legacy default stream.
// Work thus runs in the order of enqueueing, and a freed block may be reused at
// once.
inline constexpr cudaStream_t kStream = nullptr;

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_CUDA_STATUS_H_
