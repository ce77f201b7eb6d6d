#include "tensor/backend/cuda/cuda_status.h"

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/device.h"

namespace hawser::tensor::cuda {

absl::Status CudaStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) [[likely]]
    return absl::OkStatus();
  const std::string message =
      absl::StrCat(absl::string_view(what.data(), what.size()), ": ",
                   cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status LaunchStatus(std::string_view kernel) {
  return CudaStatus(cudaGetLastError(), kernel);
}

// These calls cannot fail for a device that holds a tensor.
DeviceGuard::DeviceGuard(Device device) : current_(device.index) {
  cudaGetDevice(&previous_);
  if (current_ != previous_) cudaSetDevice(current_);
}

DeviceGuard::~DeviceGuard() {
  if (current_ != previous_) cudaSetDevice(previous_);
}

}  // namespace hawser::tensor::cuda
