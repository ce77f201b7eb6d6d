#include "tensor/device.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace hawser::tensor {

std::string Device::ToString() const {
  if (type == DeviceType::kCpu) return "cpu";
  return absl::StrCat("cuda:", index);
}

absl::StatusOr<Device> Device::Parse(std::string_view text) {
  if (text == "cpu") return kCpu;
  if (text == "cuda") return Cuda(0);
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const char* begin = text.data() + kPrefix.size();
    const char* end = text.data() + text.size();
    int index = -1;
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && index >= 0) return Cuda(index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", absl::string_view(text.data(), text.size()),
                   "\" is neither cpu, cuda nor cuda:<index>"));
}

std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.ToString();
}

}  // namespace hawser::tensor
