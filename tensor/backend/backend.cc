#include "tensor/backend/backend.h"

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor/device.h"

namespace hawser::tensor {
namespace {

// One slot per DeviceType. Constant-initialized, because backends register
// during static initialization.
std::atomic<Backend*> backends[kNumDeviceTypes];

std::atomic<Backend*>& Slot(DeviceType type) {
  return backends[static_cast<size_t>(type)];
}

absl::Status NoBackend(Device device) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no kernels for device ", device.ToString(), " are linked into this ",
      "program",
      device.type == DeviceType::kCuda ? ": build it with --config=cuda" : ""));
}

}  // namespace

void RegisterBackend(DeviceType type, Backend* backend) {
  Slot(type).store(backend, std::memory_order_release);
}

absl::StatusOr<Backend*> BackendFor(Device device) {
  Backend* const backend = Slot(device.type).load(std::memory_order_acquire);
  if (backend == nullptr) return NoBackend(device);
  return backend;
}

}  // namespace hawser::tensor
