#include "tensor/backend/cuda/cuda_backend.h"

#include "tensor/backend/backend.h"
#include "tensor/device.h"

namespace hawser::tensor::cuda {
namespace {

// Never destroyed: threads may still use tensors while the process ends.
[[maybe_unused]] const bool registered = [] {
  RegisterBackend(DeviceType::kCuda, new CudaBackend);
  return true;
}();

}  // namespace
}  // namespace hawser::tensor::cuda
