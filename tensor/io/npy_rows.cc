#include "tensor/io/npy_rows.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/io/npy_file.h"
#include "tensor/io/tensor_file.h"

namespace hawser::tensor {
namespace {

absl::Status CheckRows(const internal::NpyFile& npy,
                       std::span<const int64_t> rows) {
  const int64_t num_rows = npy.header.shape[0];
  for (const int64_t row : rows) {
    if (row < 0 || row >= num_rows) {
      return absl::OutOfRangeError(absl::StrCat("npy file ", npy.file.path(),
                                                " has no row ", row,
                                                ": it has ", num_rows));
    }
  }
  return absl::OkStatus();
}

// The number of rows at the begin of `rows` that follow each other in the file.
size_t RunLength(std::span<const int64_t> rows) {
  size_t length = 1;
  while (length < rows.size() && rows[length] == rows[length - 1] + 1) ++length;
  return length;
}

// A tensor for `count` rows.
absl::StatusOr<Tensor> EmptyRows(const internal::NpyHeader& header,
                                 size_t count) {
  std::vector<int64_t> dims(header.shape.begin(), header.shape.end());
  dims[0] = static_cast<int64_t>(count);
  return Tensor::TryEmpty(Shape(std::span<const int64_t>(dims)),
                          {.dtype = header.dtype});
}

}  // namespace

absl::StatusOr<NpyRows> NpyRows::Open(std::string path) {
  ASSIGN_OR_RETURN(internal::NpyFile npy, internal::OpenNpy(std::move(path)));
  const auto invalid = [&](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("npy file ", npy.file.path(), ": ", what));
  };
  const int rank = npy.header.shape.rank();
  if (rank == 0) return invalid("a scalar has no rows");
  if (rank > 1 && npy.header.fortran_order) {
    return invalid(
        "the rows of an array in column-major order cannot be read apart; save "
        "it in row-major order, such as by numpy.ascontiguousarray");
  }
  return NpyRows(std::make_unique<const internal::NpyFile>(std::move(npy)));
}

NpyRows::NpyRows(std::unique_ptr<const internal::NpyFile> npy)
    : npy_(std::move(npy)) {}
NpyRows::NpyRows(NpyRows&&) noexcept = default;
NpyRows::~NpyRows() = default;

const std::string& NpyRows::path() const { return npy_->file.path(); }
DType NpyRows::dtype() const { return npy_->header.dtype; }
const Shape& NpyRows::shape() const { return npy_->header.shape; }

absl::StatusOr<Tensor> NpyRows::Read(std::span<const int64_t> rows) const {
  RETURN_IF_ERROR(CheckRows(*npy_, rows));
  ASSIGN_OR_RETURN(Tensor tensor, EmptyRows(npy_->header, rows.size()));
  if (tensor.byte_size() == 0) return tensor;
  const size_t row_bytes =
      static_cast<size_t>(tensor.byte_size()) / rows.size();
  auto* to = static_cast<std::byte*>(tensor.raw_data());
  while (!rows.empty()) {
    const size_t run = RunLength(rows);
    const uint64_t offset =
        npy_->data_offset + static_cast<uint64_t>(rows[0]) * row_bytes;
    RETURN_IF_ERROR(npy_->file.ReadAt(offset, {to, run * row_bytes}));
    to += run * row_bytes;
    rows = rows.subspan(run);
  }
  if (dtype() == DType::kBool) internal::NormalizeBools(tensor);
  if (npy_->header.big_endian) internal::SwapByteOrder(tensor);
  return tensor;
}

}  // namespace hawser::tensor
