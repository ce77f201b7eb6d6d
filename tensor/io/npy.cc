#include "tensor/io/npy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_file.h"
#include "tensor/io/npy_file.h"
#include "tensor/io/npy_header.h"
#include "tensor/io/tensor_file.h"

namespace hawser::tensor {
namespace {

absl::Status Invalid(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("npy file ", path, ": ", what));
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
  ASSIGN_OR_RETURN(const internal::NpyFile npy,
                   internal::OpenNpy(std::string(path)));
  Shape shape = npy.header.shape;
  if (npy.header.fortran_order) {
    std::vector<int64_t> dims(shape.begin(), shape.end());
    std::reverse(dims.begin(), dims.end());
    shape = Shape(std::span<const int64_t>(dims));
  }
  ASSIGN_OR_RETURN(Tensor tensor,
                   internal::ReadElements(npy.file, npy.data_offset,
                                          npy.header.dtype, shape));
  if (npy.header.big_endian) internal::SwapByteOrder(tensor);
  return npy.header.fortran_order ? FromColumnMajor(tensor) : tensor;
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
