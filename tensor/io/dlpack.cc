#include "tensor/io/dlpack.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::tensor {
namespace {

static_assert(sizeof(DlpackTensor) == 48);
static_assert(sizeof(DlpackManagedTensor) == 64);
static_assert(offsetof(DlpackTensor, dtype) == 20);
static_assert(offsetof(DlpackTensor, byte_offset) == 40);

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("DLPack tensor: ", what));
}

DlpackDataType DataTypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * ItemBytes(dtype));
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
      return {kDlpackFloat, bits, 1};
    case DType::kBF16:
      return {kDlpackBfloat, bits, 1};
    case DType::kI64:
    case DType::kI32:
      return {kDlpackInt, bits, 1};
    case DType::kU8:
      return {kDlpackUint, bits, 1};
    case DType::kBool:
      return {kDlpackBool, bits, 1};
  }
  std::abort();
}

absl::StatusOr<DType> DTypeFrom(DlpackDataType type) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const DlpackDataType ours = DataTypeOf(dtype);
    if (ours.code == type.code && ours.bits == type.bits &&
        ours.lanes == type.lanes) {
      return dtype;
    }
  }
  return Invalid(absl::StrCat("no dtype has code ", int{type.code}, ", ",
                              int{type.bits}, " bits, ", int{type.lanes},
                              " lanes"));
}

absl::StatusOr<Device> DeviceFrom(DlpackDevice device) {
  if (device.device_type == kDlpackCpu ||
      device.device_type == kDlpackCudaHost) {
    return kCpu;
  }
  if (device.device_type == kDlpackCuda && device.device_id >= 0) {
    return Cuda(device.device_id);
  }
  return Invalid(absl::StrCat("device type ", device.device_type, ", index ",
                              device.device_id, " is not supported"));
}

// State kept alive by an exported tensor.
struct Export {
  DlpackManagedTensor managed;
  Tensor tensor;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
};

void DeleteExport(DlpackManagedTensor* self) {
  delete static_cast<Export*>(self->manager_ctx);
}

// Returns the extent of the elements in bytes, from the first one on. Shape and
// strides have the same rank.
absl::StatusOr<int64_t> BytesReached(const Shape& shape, const Strides& strides,
                                     DType dtype) {
  ASSIGN_OR_RETURN(const int64_t num_elements, shape.CheckedNumElements());
  if (num_elements == 0) return 0;
  int64_t last = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t reach;
    if (strides[i] < 0) {
      return Invalid(absl::StrCat("stride ", strides[i], " of dimension ", i,
                                  " is negative"));
    }
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return Invalid("its strides reach beyond an int64");
    }
  }
  int64_t bytes;
  if (__builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, ItemBytes(dtype), &bytes)) {
    return Invalid("its strides reach beyond an int64");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<DlpackManagedTensor*> ToDlpack(const Tensor& tensor) {
  if (!tensor.defined()) return Invalid("the tensor is undefined");
  auto exported = std::make_unique<Export>();
  exported->tensor = tensor.Detach();
  std::copy(tensor.shape().begin(), tensor.shape().end(), exported->shape);
  std::copy(tensor.strides().begin(), tensor.strides().end(),
            exported->strides);
  const Device device = tensor.device();
  exported->managed = {
      .dl_tensor =
          {
              .data = exported->tensor.raw_data(),
              .device = {device.is_cpu() ? kDlpackCpu : kDlpackCuda,
                         device.index},
              .ndim = tensor.rank(),
              .dtype = DataTypeOf(tensor.dtype()),
              .shape = exported->shape,
              .strides = exported->strides,
              .byte_offset = 0,
          },
      .manager_ctx = exported.get(),
      .deleter = &DeleteExport,
  };
  return &exported.release()->managed;
}

absl::StatusOr<Tensor> FromDlpack(DlpackManagedTensor* managed) {
  if (managed == nullptr) return Invalid("the pointer is null");
  const DlpackTensor& source = managed->dl_tensor;
  if (source.ndim < 0 || source.ndim > kMaxRank) {
    return Invalid(
        absl::StrCat(source.ndim, " dimensions; ", kMaxRank, " is the limit"));
  }
  if (source.ndim > 0 && source.shape == nullptr) {
    return Invalid("it has dimensions but no shape");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeFrom(source.dtype));
  ASSIGN_OR_RETURN(const Device device, DeviceFrom(source.device));
  const auto rank = static_cast<size_t>(source.ndim);
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Create(std::span<const int64_t>(source.shape, rank)));
  const Strides strides =
      source.strides == nullptr
          ? Strides::RowMajor(shape)
          : Strides(std::span<const int64_t>(source.strides, rank));
  ASSIGN_OR_RETURN(const int64_t bytes, BytesReached(shape, strides, dtype));
  if (bytes > 0 && source.data == nullptr) return Invalid("its data is null");
  std::byte* const data =
      bytes == 0 ? nullptr
                 : static_cast<std::byte*>(source.data) + source.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % ItemBytes(dtype) != 0) {
    return Invalid(absl::StrCat("its memory is not aligned to the ",
                                ItemBytes(dtype), " bytes of an element"));
  }
  StoragePtr storage =
      Storage::Wrap(data, static_cast<size_t>(bytes), device, [managed] {
        if (managed->deleter != nullptr) managed->deleter(managed);
      });
  return Tensor::FromStorage(std::move(storage), 0, shape, strides, dtype);
}

}  // namespace hawser::tensor
