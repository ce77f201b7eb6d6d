// The header of an npy file.

#ifndef HAWSER_TENSOR_IO_NPY_HEADER_H_
#define HAWSER_TENSOR_IO_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::tensor::internal {

inline constexpr size_t kNpyMagicBytes = 8;
// Maximum size of a dictionary; 16 sizes take a few hundred bytes.
inline constexpr size_t kMaxNpyHeaderBytes = size_t{1} << 16;

struct NpyHeader {
  DType dtype = DType::kF32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Returns the size of the length field, 2 or 4 bytes, that follows `start`, the
// first kNpyMagicBytes of a file. kInvalidArgument if it is not an npy file of
// a known version.
absl::StatusOr<size_t> NpyLengthBytes(std::string_view start);

// Parses the dictionary: a literal with 'descr', 'fortran_order' and 'shape',
// in any order, each once. It is parsed by a dedicated grammar and never
// evaluated. kInvalidArgument, with the reason in one line, if it is malformed.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

// Formats magic, version 1.0, length and dictionary, padded to a multiple of 64
// bytes. kInvalidArgument for bf16.
absl::StatusOr<std::string> FormatNpyHeader(DType dtype, const Shape& shape);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_IO_NPY_HEADER_H_
