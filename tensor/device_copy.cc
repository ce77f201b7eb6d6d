#include "tensor/device_copy.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "async/check.h"

namespace hawser::tensor {
namespace {

std::atomic<DeviceCopy>& CopyOf(DeviceType type) {
  static std::atomic<DeviceCopy> copies[kNumDeviceTypes] = {};
  return copies[static_cast<int>(type)];
}

}  // namespace

void RegisterDeviceCopy(DeviceType type, DeviceCopy copy) {
  HAWSER_CHECK(type != DeviceType::kCpu) << "the CPU's copy is built in";
  CopyOf(type).store(copy);
}

absl::Status CopyAcrossDevices(Tensor& dest, const Tensor& source) {
  const Device device =
      dest.device().is_cpu() ? source.device() : dest.device();
  const DeviceCopy copy = CopyOf(device.type).load();
  if (copy == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no copy from ", source.device().ToString(), " to ",
                     dest.device().ToString(),
                     ": this binary was built without that device"));
  }
  return copy(dest, source);
}

}  // namespace hawser::tensor
