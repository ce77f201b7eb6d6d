#include "tensor/io/tensor_file.h"

#include <bit>
#include <cstddef>
#include <span>

#include "async/status_macros.h"

namespace hawser::tensor::internal {

static_assert(std::endian::native == std::endian::little,
              "files have the elements of a little-endian machine");

absl::StatusOr<Tensor> ReadElements(const fs::InputFile& file, uint64_t offset,
                                    DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::TryEmpty(shape, {.dtype = dtype}));
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.raw_data()),
                                   static_cast<size_t>(tensor.byte_size()));
  RETURN_IF_ERROR(file.ReadAt(offset, bytes));
  if (dtype == DType::kBool) NormalizeBools(tensor);
  return tensor;
}

void NormalizeBools(Tensor& tensor) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.raw_data()),
                                   static_cast<size_t>(tensor.byte_size()));
  for (std::byte& value : bytes) {
    value = std::byte{value != std::byte{0}};
  }
}

absl::Status AppendElements(const Tensor& tensor, fs::AtomicFile& file) {
  ASSIGN_OR_RETURN(const Tensor on_cpu, tensor.Detach().To(kCpu));
  ASSIGN_OR_RETURN(const Tensor dense, on_cpu.Contiguous());
  return file.Append({static_cast<const std::byte*>(dense.raw_data()),
                      static_cast<size_t>(dense.byte_size())});
}

}  // namespace hawser::tensor::internal
