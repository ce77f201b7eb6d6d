#include "tensor/io/npy_file.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::tensor::internal {
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
absl::StatusOr<NpyHeader> ReadHeader(const fs::InputFile& file,
                                     uint64_t& data_offset) {
  ASSIGN_OR_RETURN(const std::string start, ReadText(file, 0, kNpyMagicBytes));
  const auto length_bytes = NpyLengthBytes(start);
  if (!length_bytes.ok()) {
    return Invalid(file.path(), length_bytes.status().message());
  }
  ASSIGN_OR_RETURN(const std::string length,
                   ReadText(file, kNpyMagicBytes, *length_bytes));
  uint64_t header_bytes = 0;
  for (size_t i = length.size(); i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(length[i]);
  }
  if (header_bytes > kMaxNpyHeaderBytes) {
    return Invalid(file.path(), absl::StrCat("a header of ", header_bytes,
                                             " bytes; at most ",
                                             kMaxNpyHeaderBytes, " are read"));
  }
  data_offset = kNpyMagicBytes + length.size() + header_bytes;
  ASSIGN_OR_RETURN(const std::string text,
                   ReadText(file, data_offset - header_bytes, header_bytes));
  auto header = ParseNpyDictionary(text);
  if (!header.ok()) return Invalid(file.path(), header.status().message());
  return header;
}

absl::Status CheckLength(const fs::InputFile& file, uint64_t data_offset,
                         const NpyHeader& header) {
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

}  // namespace

absl::StatusOr<NpyFile> OpenNpy(std::string path) {
  ASSIGN_OR_RETURN(fs::InputFile file, fs::InputFile::Open(std::move(path)));
  uint64_t data_offset = 0;
  ASSIGN_OR_RETURN(NpyHeader header, ReadHeader(file, data_offset));
  RETURN_IF_ERROR(CheckLength(file, data_offset, header));
  return NpyFile{std::move(file), std::move(header), data_offset};
}

void SwapByteOrder(Tensor& tensor) {
  const int64_t item_bytes = ItemBytes(tensor.dtype());
  auto* bytes = static_cast<std::byte*>(tensor.raw_data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    std::reverse(bytes, bytes + item_bytes);
    bytes += item_bytes;
  }
}

}  // namespace hawser::tensor::internal
