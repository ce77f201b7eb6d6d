#include "tensor/io/npy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_file.h"
#include "fs/input_file.h"
#include "tensor/io/npy_header.h"
#include "tensor/io/tensor_file.h"

namespace hawser::tensor {
namespace {

absl::Status Invalid(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("npy file ", path, ": ", what));
}

// Reads `bytes` bytes from `offset`; an error if the file is too short.
absl::StatusOr<std::string> ReadText(const fs::InputFile& file, uint64_t offset,
                                     uint64_t bytes) {
  if (offset > file.bytes() || bytes > file.bytes() - offset) {
    return Invalid(
        file.path(),
        absl::StrCat("ends within its header: ", file.bytes(), " bytes"));
  }
  std::string text(bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

// Reads the header, and sets the offset of the data.
absl::StatusOr<internal::NpyHeader> ReadHeader(const fs::InputFile& file,
                                               uint64_t& data_offset) {
  ASSIGN_OR_RETURN(const std::string start,
                   ReadText(file, 0, internal::kNpyMagicBytes));
  const auto length_bytes = internal::NpyLengthBytes(start);
  if (!length_bytes.ok()) {
    return Invalid(file.path(), length_bytes.status().message());
  }
  ASSIGN_OR_RETURN(const std::string length,
                   ReadText(file, internal::kNpyMagicBytes, *length_bytes));
  uint64_t header_bytes = 0;
  for (size_t i = length.size(); i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(length[i]);
  }
  if (header_bytes > internal::kMaxNpyHeaderBytes) {
    return Invalid(
        file.path(),
        absl::StrCat("a header of ", header_bytes, " bytes; at most ",
                     internal::kMaxNpyHeaderBytes, " are read"));
  }
  data_offset = internal::kNpyMagicBytes + length.size() + header_bytes;
  ASSIGN_OR_RETURN(const std::string text,
                   ReadText(file, data_offset - header_bytes, header_bytes));
  auto header = internal::ParseNpyDictionary(text);
  if (!header.ok()) return Invalid(file.path(), header.status().message());
  return header;
}

absl::Status CheckLength(const fs::InputFile& file, uint64_t data_offset,
                         const internal::NpyHeader& header) {
  ASSIGN_OR_RETURN(const int64_t num_elements,
                   header.shape.CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(num_elements, ItemBytes(header.dtype), &bytes) ||
      static_cast<uint64_t>(bytes) != file.bytes() - data_offset) {
    return Invalid(file.path(),
                   absl::StrCat("shape ", header.shape.ToString(), " of ",
                                ItemBytes(header.dtype),
                                "-byte elements does not match its ",
                                file.bytes() - data_offset, " bytes of data"));
  }
  return absl::OkStatus();
}

void SwapByteOrder(Tensor& tensor) {
  const int64_t item_bytes = ItemBytes(tensor.dtype());
  auto* bytes = static_cast<std::byte*>(tensor.raw_data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    std::reverse(bytes, bytes + item_bytes);
    bytes += item_bytes;
  }
}

// Converts an array in column-major order, given with its shape reversed, to
// row-major order.
absl::StatusOr<Tensor> FromColumnMajor(const Tensor& reversed) {
  std::vector<int> dims;
  for (int i = reversed.rank() - 1; i >= 0; --i) dims.push_back(i);
  ASSIGN_OR_RETURN(const Tensor view, reversed.Permute(dims));
  return view.Contiguous();
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(std::string_view path) {
  ASSIGN_OR_RETURN(const fs::InputFile file,
                   fs::InputFile::Open(std::string(path)));
  uint64_t data_offset = 0;
  ASSIGN_OR_RETURN(internal::NpyHeader header, ReadHeader(file, data_offset));
  RETURN_IF_ERROR(CheckLength(file, data_offset, header));
  if (header.fortran_order) {
    std::vector<int64_t> dims(header.shape.begin(), header.shape.end());
    std::reverse(dims.begin(), dims.end());
    header.shape = Shape(std::span<const int64_t>(dims));
  }
  ASSIGN_OR_RETURN(
      Tensor tensor,
      internal::ReadElements(file, data_offset, header.dtype, header.shape));
  if (header.big_endian) SwapByteOrder(tensor);
  return header.fortran_order ? FromColumnMajor(tensor) : tensor;
}

absl::Status WriteNpy(std::string_view path, const Tensor& tensor) {
  const std::string name(path);
  if (!tensor.defined()) return Invalid(name, "the tensor is undefined");
  const auto header = internal::FormatNpyHeader(tensor.dtype(), tensor.shape());
  if (!header.ok()) return Invalid(name, header.status().message());
  ASSIGN_OR_RETURN(fs::AtomicFile file, fs::AtomicFile::Create(name));
  RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(*header))));
  RETURN_IF_ERROR(internal::AppendElements(tensor, file));
  return file.Commit();
}

}  // namespace hawser::tensor
