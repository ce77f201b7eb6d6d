// Any bytes as a tensor header, before any number of bytes of elements.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "async/check.h"
#include "proto/tensor.pb.h"
#include "tensor/tensor.h"
#include "tensor/wire_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte splits the input into header and elements.
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const size_t header_bytes = std::min<size_t>(data[0], rest.size());
  hawser::v1::TensorHeader header;
  if (!header.ParseFromArray(rest.data(), static_cast<int>(header_bytes))) {
    return 0;
  }
  const std::span<const std::byte> elements =
      std::as_bytes(rest.subspan(header_bytes));
  const auto tensor = hawser::tensor::DecodeTensor(
      header, std::span<const std::span<const std::byte>>(&elements, 1));
  if (!tensor.ok()) return 0;
  HAWSER_CHECK(tensor->byte_size() == static_cast<int64_t>(elements.size()))
      << tensor->ToString();
  if (tensor->dtype() == hawser::tensor::DType::kBool) {
    const auto* const bools = static_cast<const uint8_t*>(tensor->raw_data());
    HAWSER_CHECK(std::all_of(bools, bools + tensor->byte_size(),
                             [](uint8_t value) { return value <= 1; }))
        << tensor->ToString();
  }
  const hawser::v1::TensorHeader again =
      hawser::tensor::ToHeader(*tensor, header.requires_grad());
  HAWSER_CHECK(again.dtype() == header.dtype() &&
               std::equal(again.dims().begin(), again.dims().end(),
                          header.dims().begin(), header.dims().end()))
      << tensor->ToString();
  return 0;
}
