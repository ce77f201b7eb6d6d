// Device that holds the memory of a tensor.

#ifndef HAWSER_TENSOR_DEVICE_H_
#define HAWSER_TENSOR_DEVICE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::tensor {

enum class DeviceType : uint8_t { kCpu, kCuda };

inline constexpr int kNumDeviceTypes = 2;

struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  constexpr bool is_cpu() const { return type == DeviceType::kCpu; }
  friend constexpr bool operator==(const Device&, const Device&) = default;

  // "cpu" or "cuda:0".
  std::string ToString() const;

  // Parses "cpu", "cuda" or "cuda:<index>"; kInvalidArgument otherwise.
  static absl::StatusOr<Device> Parse(std::string_view text);
};

inline constexpr Device kCpu{};
constexpr Device Cuda(int index = 0) { return {DeviceType::kCuda, index}; }

std::ostream& operator<<(std::ostream& out, const Device& device);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_DEVICE_H_
