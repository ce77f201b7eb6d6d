#include "tensor/wire_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/tensor.pb.h"

namespace hawser::tensor {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire form is that of a little-endian machine");

v1::DType ToWire(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return v1::DTYPE_F32;
    case DType::kF64:
      return v1::DTYPE_F64;
    case DType::kF16:
      return v1::DTYPE_F16;
    case DType::kBF16:
      return v1::DTYPE_BF16;
    case DType::kI64:
      return v1::DTYPE_I64;
    case DType::kI32:
      return v1::DTYPE_I32;
    case DType::kU8:
      return v1::DTYPE_U8;
    case DType::kBool:
      return v1::DTYPE_BOOL;
  }
  return v1::DTYPE_UNSPECIFIED;
}

std::optional<DType> FromWire(int wire) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (ToWire(dtype) == wire) return dtype;
  }
  return std::nullopt;
}

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor header: ", what));
}

}  // namespace

void NormalizeBools(std::span<std::byte> memory) {
  for (std::byte& value : memory) value = std::byte{value != std::byte{0}};
}

v1::TensorHeader ToHeader(const Tensor& tensor, bool requires_grad) {
  v1::TensorHeader header;
  header.set_dtype(ToWire(tensor.dtype()));
  for (const int64_t dim : tensor.shape()) header.add_dims(dim);
  header.set_requires_grad(requires_grad);
  return header;
}

absl::StatusOr<WireTensor> ValidateHeader(const v1::TensorHeader& header,
                                          uint64_t payload_bytes) {
  const std::optional<DType> dtype = FromWire(header.dtype());
  if (!dtype) {
    return Invalid(absl::StrCat("dtype ", static_cast<int>(header.dtype()),
                                " is unknown"));
  }
  if (header.dims_size() > kMaxRank) {
    return Invalid(absl::StrCat(header.dims_size(), " dimensions; ", kMaxRank,
                                " is the limit"));
  }
  for (int i = 0; i < header.dims_size(); ++i) {
    if (header.dims(i) < 0 || header.dims(i) > kMaxWireDim) {
      return Invalid(absl::StrCat("dimension ", i, " is ", header.dims(i),
                                  ", outside [0, 2^40]"));
    }
  }
  ASSIGN_OR_RETURN(Shape shape, Shape::Create(std::span<const int64_t>(
                                    header.dims().data(),
                                    static_cast<size_t>(header.dims_size()))));
  int64_t bytes;
  if (__builtin_mul_overflow(shape.num_elements(), ItemBytes(*dtype), &bytes)) {
    return Invalid(absl::StrCat("shape ", shape.ToString(),
                                " has more bytes than an int64 counts"));
  }
  if (static_cast<uint64_t>(bytes) != payload_bytes) {
    return Invalid(absl::StrCat(DTypeName(*dtype).data(), shape.ToString(),
                                " takes ", bytes, " bytes, but ", payload_bytes,
                                " came with it"));
  }
  return WireTensor{*dtype, std::move(shape), bytes, header.requires_grad()};
}

absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header, uint64_t payload_bytes,
    absl::FunctionRef<absl::Status(std::span<std::byte>)> fill) {
  ASSIGN_OR_RETURN(const WireTensor wire,
                   ValidateHeader(header, payload_bytes));
  ASSIGN_OR_RETURN(Tensor tensor,
                   Tensor::TryEmpty(wire.shape, {.dtype = wire.dtype}));
  if (wire.bytes == 0) return tensor;
  const std::span<std::byte> memory(static_cast<std::byte*>(tensor.raw_data()),
                                    static_cast<size_t>(wire.bytes));
  RETURN_IF_ERROR(fill(memory));
  if (wire.dtype == DType::kBool) NormalizeBools(memory);
  return tensor;
}

absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header,
    std::span<const std::span<const std::byte>> chunks) {
  uint64_t payload_bytes = 0;
  for (const auto& chunk : chunks) payload_bytes += chunk.size();
  return DecodeTensor(header, payload_bytes, [&](std::span<std::byte> memory) {
    std::byte* dest = memory.data();
    for (const auto& chunk : chunks) {
      if (chunk.empty()) continue;
      std::memcpy(dest, chunk.data(), chunk.size());
      dest += chunk.size();
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Tensor> AdoptTensor(const v1::TensorHeader& header,
                                   StoragePtr storage) {
  ASSIGN_OR_RETURN(const WireTensor wire,
                   ValidateHeader(header, storage->bytes()));
  if (wire.dtype == DType::kBool) {
    NormalizeBools({static_cast<std::byte*>(storage->data()),
                    static_cast<size_t>(wire.bytes)});
  }
  return Tensor::FromStorage(std::move(storage), /*offset=*/0, wire.shape,
                             Strides::RowMajor(wire.shape), wire.dtype);
}

}  // namespace hawser::tensor
