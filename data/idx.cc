#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 33;

struct GzCloser {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzHandle = std::unique_ptr<gzFile_s, GzCloser>;

absl::Status Malformed(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// zlib reads plain files through the same calls, byte for byte.
absl::StatusOr<GzHandle> Open(const std::string& path) {
  errno = 0;
  GzHandle file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  return file;
}

// Fills `out`; an error if the file ends early.
absl::Status ReadExactly(gzFile_s* file, const std::string& path,
                         const char* part, uint8_t* out, int64_t byte_count) {
  int64_t done = 0;
  while (done < byte_count) {
    const auto chunk = static_cast<unsigned>(
        std::min<int64_t>(byte_count - done, int64_t{1} << 30));
    const int got = gzread(file, out + done, chunk);
    int code = Z_OK;
    const char* message = gzerror(file, &code);
    if (got < 0 || (code != Z_OK && code != Z_BUF_ERROR)) {
      if (code == Z_ERRNO) {
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
      }
      return Malformed(path, absl::StrCat("damaged gzip data (", message, ")"));
    }
    if (got == 0) {
      return Malformed(
          path, absl::StrCat("truncated: the ", part, " needs ", byte_count,
                             " bytes, but only ", done, " are present"));
    }
    done += got;
  }
  return absl::OkStatus();
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

absl::StatusOr<Header> ReadHeader(gzFile_s* file, const std::string& path) {
  std::array<uint8_t, 4> magic;
  RETURN_IF_ERROR(
      ReadExactly(file, path, "header", magic.data(), magic.size()));
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
    RETURN_IF_ERROR(ReadExactly(file, path, "header", raw.data(), raw.size()));
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
  ASSIGN_OR_RETURN(GzHandle file, Open(path));
  ASSIGN_OR_RETURN(const Header header, ReadHeader(file.get(), path));
  const int64_t item_bytes = tensor::ItemBytes(header.dtype);

  // The buffer grows with the data actually read, so a header that declares
  // gigabytes does not allocate them.
  const int64_t total = header.num_elements * item_bytes;
  std::vector<uint8_t> payload;
  while (static_cast<int64_t>(payload.size()) < total) {
    const int64_t have = static_cast<int64_t>(payload.size());
    const int64_t step =
        std::min(total - have, std::max<int64_t>(have, 1 << 20));
    payload.resize(static_cast<size_t>(have + step));
    const absl::Status read =
        ReadExactly(file.get(), path, "payload", payload.data() + have, step);
    if (!read.ok()) {
      if (read.code() != absl::StatusCode::kInvalidArgument) return read;
      return absl::InvalidArgumentError(absl::StrCat(
          read.message(), " (the header declares ", total, " payload bytes)"));
    }
  }
  uint8_t extra = 0;
  const int after = gzread(file.get(), &extra, 1);
  if (after > 0) {
    return Malformed(path, absl::StrCat("more bytes follow the ", total,
                                        " payload bytes its header declares"));
  }
  int code = Z_OK;
  const char* message = gzerror(file.get(), &code);
  if (after < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    return Malformed(path, absl::StrCat("damaged gzip data (", message, ")"));
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
