// Fuzz test: parses arbitrary text as the dictionary of an npy file.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "async/check.h"
#include "tensor/io/npy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto header = hawser::tensor::internal::ParseNpyDictionary(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (!header.ok()) return 0;
  HAWSER_CHECK(header->shape.num_elements() >= 0);
  const auto text =
      hawser::tensor::internal::FormatNpyHeader(header->dtype, header->shape);
  HAWSER_CHECK(text.ok()) << text.status();
  const auto again = hawser::tensor::internal::ParseNpyDictionary(
      std::string_view(*text).substr(10));
  HAWSER_CHECK(again.ok()) << again.status();
  HAWSER_CHECK(again->shape == header->shape && again->dtype == header->dtype)
      << *text;
  return 0;
}
