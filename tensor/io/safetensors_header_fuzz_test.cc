// Fuzz test: parses arbitrary text as the header of a safetensors file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "async/check.h"
#include "tensor/io/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte is the size of the file's data.
  if (size == 0) return 0;
  const uint64_t data_bytes = data[0];
  const auto header = hawser::tensor::internal::ParseSafetensorsHeader(
      std::string_view(reinterpret_cast<const char*>(data + 1), size - 1),
      data_bytes);
  if (!header.ok()) return 0;
  uint64_t end = 0;
  for (const auto& entry : header->entries) {
    HAWSER_CHECK(entry.begin == end && entry.begin <= entry.end) << entry.name;
    end = entry.end;
  }
  HAWSER_CHECK(end == data_bytes);
  const auto json = hawser::tensor::internal::FormatSafetensorsHeader(*header);
  HAWSER_CHECK(json.ok()) << json.status();
  const auto again =
      hawser::tensor::internal::ParseSafetensorsHeader(*json, data_bytes);
  HAWSER_CHECK(again.ok()) << again.status();
  HAWSER_CHECK(again->metadata == header->metadata);
  HAWSER_CHECK(std::equal(again->entries.begin(), again->entries.end(),
                          header->entries.begin(), header->entries.end(),
                          [](const auto& a, const auto& b) {
                            return a.name == b.name && a.dtype == b.dtype &&
                                   a.shape == b.shape && a.begin == b.begin &&
                                   a.end == b.end;
                          }))
      << *json;
  return 0;
}
