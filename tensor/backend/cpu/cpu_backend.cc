#include "tensor/backend/cpu/cpu_backend.h"

#include "tensor/backend/backend.h"
#include "tensor/device.h"

namespace hawser::tensor::cpu {
namespace {

// Never destroyed: threads may still use tensors while the process ends.
const bool registered = [] {
  RegisterBackend(DeviceType::kCpu, new CpuBackend);
  return true;
}();

}  // namespace
}  // namespace hawser::tensor::cpu
