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
  // Bytes [begin, end) of the data.
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads a header that stands before `data_bytes` bytes of data. Entries come in
// the order of their data, and cover it without gap or overlap. What is not
// exactly so is kInvalidArgument, told in one line.
//
// Parses as it goes, with no recursion: takes memory in proportion to the
// header, however nested.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         uint64_t data_bytes);

// The inverse, padded with spaces so that 8 bytes of length and the header are
// a multiple of 64 bytes. kInvalidArgument for a name or metadata not in UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header);

// `name` in quotes, on one line, and not too long, for messages.
std::string QuotedName(std::string_view name);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_IO_SAFETENSORS_HEADER_H_
