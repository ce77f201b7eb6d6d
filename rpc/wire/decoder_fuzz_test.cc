// Fuzz test: decodes arbitrary bytes as the values of a call.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "async/check.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"
#include "tensor/tensor.h"

namespace {

using ::hawser::rpc::Decoder;
using ::hawser::rpc::Encoder;
using ::hawser::rpc::WireTraits;
using ::hawser::tensor::Tensor;

const std::vector<Tensor>& Tensors() {
  static const auto* const tensors =
      new std::vector<Tensor>{Tensor::Zeros({2, 3}), Tensor::Ones({1})};
  return *tensors;
}

// If the bytes decode as a `T`, checks that it round-trips according to `same`.
template <class T, class Same>
void Check(std::string_view bytes, const Same& same) {
  Decoder decoder(nullptr, nullptr, bytes, Tensors());
  const absl::StatusOr<T> value = WireTraits<T>::Decode(decoder);
  if (!value.ok()) return;
  Encoder encoder;
  HAWSER_CHECK(WireTraits<T>::Encode(encoder, *value).ok());
  const std::string written = encoder.TakeValues();
  Decoder again(nullptr, nullptr, written, encoder.TakeTensors());
  const absl::StatusOr<T> copy = WireTraits<T>::Decode(again);
  HAWSER_CHECK(copy.ok()) << copy.status();
  HAWSER_CHECK(same(*value, *copy));
}

template <class T>
void CheckEqual(std::string_view bytes) {
  Check<T>(bytes, [](const T& a, const T& b) { return a == b; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckEqual<bool>(bytes);
  CheckEqual<int32_t>(bytes);
  CheckEqual<uint64_t>(bytes);
  CheckEqual<std::string>(bytes);
  CheckEqual<std::vector<int64_t>>(bytes);
  CheckEqual<std::vector<std::vector<uint32_t>>>(bytes);
  CheckEqual<std::map<std::string, std::optional<int64_t>>>(bytes);
  CheckEqual<std::tuple<std::string, std::pair<bool, int8_t>>>(bytes);
  // NaN is not equal to itself.
  Check<std::vector<double>>(
      bytes, [](const auto& a, const auto& b) { return a.size() == b.size(); });
  Check<std::vector<Tensor>>(
      bytes, [](const auto& a, const auto& b) { return a.size() == b.size(); });
  return 0;
}
