#include "data/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/gzip_reader.h"

namespace hawser::data {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 33;

absl::Status Malformed(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// Fills `out`; an error if the file ends early.
absl::Status ReadExactly(GzipReader& file, const char* part,
                         std::span<uint8_t> out) {
  ASSIGN_OR_RETURN(
      const size_t got,
      file.Read(std::span(reinterpret_cast<char*>(out.data()), out.size())));
  if (got == out.size()) return absl::OkStatus();
  return Malformed(file.path(),
                   absl::StrCat("truncated: the ", part, " needs ", out.size(),
                                " bytes, but only ", got, " are present"));
}

std::optional<tensor::DType> DTypeOfCode(uint8_t code) {
  switch (code) {
    case 0x08:
      return tensor::DType::kU8;
    case 0x0C:
      return tensor::DType::kI32;
    case 0x0D:
      return tensor::DType::kF32;
    case 0x0E:
      return tensor::DType::kF64;
    default:
      return std::nullopt;
  }
}

void BigEndianToHost(uint8_t* bytes, int64_t count, int64_t item_bytes) {
  if (item_bytes == 1 || std::endian::native == std::endian::big) return;
  for (int64_t i = 0; i < count; ++i) {
    std::reverse(bytes + i * item_bytes, bytes + (i + 1) * item_bytes);
  }
}

struct Header {
  tensor::DType dtype;
  std::vector<int64_t> dims;
  int64_t num_elements;
};

absl::StatusOr<Header> ReadHeader(GzipReader& file) {
  const std::string& path = file.path();
  std::array<uint8_t, 4> magic;
  RETURN_IF_ERROR(ReadExactly(file, "header", magic));
  if (magic[0] != 0 || magic[1] != 0) {
    return Malformed(path,
                     "not an IDX file: it must begin with two zero bytes");
  }
  const auto dtype = DTypeOfCode(magic[2]);
  if (!dtype.has_value()) {
    return Malformed(path, absl::StrCat("IDX element type 0x",
                                        absl::Hex(magic[2], absl::kZeroPad2),
                                        " is not supported (u8, i32, f32 and "
                                        "f64 are)"));
  }
  const int rank = magic[3];
  if (rank < 1 || rank > 16) {
    return Malformed(path,
                     absl::StrCat("IDX rank ", rank, " is not in 1 to 16"));
  }
  Header header{*dtype, {}, 1};
  for (int i = 0; i < rank; ++i) {
    std::array<uint8_t, 4> raw;
    RETURN_IF_ERROR(ReadExactly(file, "header", raw));
    const int64_t dim = (int64_t{raw[0]} << 24) | (int64_t{raw[1]} << 16) |
                        (int64_t{raw[2]} << 8) | int64_t{raw[3]};
    header.dims.push_back(dim);
    if (__builtin_mul_overflow(header.num_elements, dim,
                               &header.num_elements) ||
        header.num_elements > kMaxElements) {
      return Malformed(path, "the IDX header declares more than 2^33 elements");
    }
  }
  return header;
}

}  // namespace

absl::StatusOr<Tensor> ReadIdx(const std::string& path) {
  ASSIGN_OR_RETURN(GzipReader file, GzipReader::Open(path));
  ASSIGN_OR_RETURN(const Header header, ReadHeader(file));
  const int64_t item_bytes = tensor::ItemBytes(header.dtype);

  // The buffer grows with the data actually read, so a header that declares
  // gigabytes does not allocate them.
  const int64_t total = header.num_elements * item_bytes;
  std::vector<uint8_t> payload;
  while (static_cast<int64_t>(payload.size()) < total) {
    const size_t have = payload.size();
    const size_t step = std::min(static_cast<size_t>(total) - have,
                                 std::max(have, size_t{1} << 20));
    payload.resize(have + step);
    const absl::Status read =
        ReadExactly(file, "payload", std::span(payload).subspan(have));
    if (!read.ok()) {
      if (read.code() != absl::StatusCode::kInvalidArgument) return read;
      return absl::InvalidArgumentError(absl::StrCat(
          read.message(), " (the header declares ", total, " payload bytes)"));
    }
  }
  char extra = 0;
  ASSIGN_OR_RETURN(const size_t after, file.Read(std::span(&extra, 1)));
  if (after > 0) {
    return Malformed(path, absl::StrCat("more bytes follow the ", total,
                                        " payload bytes its header declares"));
  }

  ASSIGN_OR_RETURN(Tensor result, Tensor::TryEmpty(tensor::Shape(header.dims),
                                                   {.dtype = header.dtype}));
  BigEndianToHost(payload.data(), header.num_elements, item_bytes);
  if (!payload.empty()) {
    std::memcpy(result.raw_data(), payload.data(), payload.size());
  }
  return result;
}

}  // namespace hawser::data
