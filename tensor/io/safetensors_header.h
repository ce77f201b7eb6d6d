// The JSON header of a safetensors file.

#ifndef HAWSER_TENSOR_IO_SAFETENSORS_HEADER_H_
#define HAWSER_TENSOR_IO_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::tensor::internal {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // The byte range [begin, end) of the data.
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Parses the header of a file with `data_bytes` bytes of data. Entries are in
// the order of their data and cover it without gaps or overlaps. Anything else
// is kInvalidArgument, with the reason in one line.
//
// A streaming parser without recursion: memory is proportional to the size of
// the header, whatever its nesting.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         uint64_t data_bytes);

// Formats a header, padded with spaces so that the 8 length bytes and the
// header are a multiple of 64 bytes. kInvalidArgument for a name or metadata
// that is not UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header);

// Formats `name` for messages: quoted, on one line, and shortened.
std::string QuotedName(std::string_view name);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_IO_SAFETENSORS_HEADER_H_
