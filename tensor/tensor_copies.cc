// The members of Tensor that copy and convert elements.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/device_copy.h"
#include "tensor/internal/strided_copy.h"
#include "tensor/lost_gradient.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// The half-open range of addresses that elements lie in.
struct AddressRange {
  const std::byte* begin;
  const std::byte* end;
};

AddressRange AddressesOf(const Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.raw_data());
  if (tensor.num_elements() == 0) return {begin, begin};
  int64_t last = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    last += (tensor.shape()[i] - 1) * tensor.strides()[i];
  }
  return {begin, begin + (last + 1) * ItemBytes(tensor.dtype())};
}

bool MayOverlap(const Tensor& a, const Tensor& b) {
  if (a.device() != b.device()) return false;
  const AddressRange range_a = AddressesOf(a);
  const AddressRange range_b = AddressesOf(b);
  return range_a.begin < range_b.end && range_b.begin < range_a.end;
}

// Whether two indices may mean one element: by increasing stride, each
// dimension must step over all that the smaller ones reach.
bool MayOverlapItself(const Tensor& tensor) {
  if (tensor.is_contiguous()) return false;
  struct Dim {
    int64_t size;
    int64_t stride;
  };
  std::array<Dim, kMaxRank> dims;
  int rank = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    if (tensor.shape()[i] != 1) {
      dims[rank++] = {tensor.shape()[i], tensor.strides()[i]};
    }
  }
  std::sort(dims.begin(), dims.begin() + rank,
            [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i].stride <= reach) return true;
    reach += (dims[i].size - 1) * dims[i].stride;
  }
  return false;
}

bool SameLayout(const Tensor& a, const Tensor& b) {
  return a.raw_data() == b.raw_data() && a.dtype() == b.dtype() &&
         a.strides() == b.strides();
}

absl::Status CopyDisjoint(Tensor& dest, const Tensor& source) {
  if (!dest.device().is_cpu() || !source.device().is_cpu()) {
    return CopyAcrossDevices(dest, source);
  }
  if (dest.is_contiguous() && source.is_contiguous() &&
      dest.dtype() == source.dtype()) {
    std::memcpy(dest.raw_data(), source.raw_data(), dest.byte_size());
    return absl::OkStatus();
  }
  internal::StridedCopy(dest.shape(),
                        {dest.raw_data(), dest.dtype(), dest.strides()},
                        {source.raw_data(), source.dtype(), source.strides()});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> Tensor::ToRowMajor(DType dtype, Device device) const {
  if (is_contiguous() && this->dtype() == dtype && this->device() == device) {
    return *this;
  }
  ASSIGN_OR_RETURN(Tensor copy,
                   TryEmpty(shape(), {.dtype = dtype, .device = device}));
  RETURN_IF_ERROR(CopyDisjoint(copy, *this));
  return copy;
}

absl::StatusOr<Tensor> Tensor::Contiguous() const {
  RETURN_IF_ERROR(CheckDefined("Contiguous()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Contiguous", "autograd::Contiguous"));
  return ToRowMajor(dtype(), device());
}

absl::StatusOr<Tensor> Tensor::Clone() const {
  RETURN_IF_ERROR(CheckDefined("Clone()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Clone", "autograd::Clone"));
  ASSIGN_OR_RETURN(Tensor copy,
                   TryEmpty(shape(), {.dtype = dtype(), .device = device()}));
  RETURN_IF_ERROR(CopyDisjoint(copy, *this));
  return copy;
}

absl::StatusOr<Tensor> Tensor::To(DType dtype) const {
  RETURN_IF_ERROR(CheckDefined("To(dtype)"));
  if (IsFloatingPoint(dtype)) {
    RETURN_IF_ERROR(CheckKeepsGradient(*this, "Tensor::To", "autograd::Cast"));
  }
  if (this->dtype() == dtype) return *this;
  return ToRowMajor(dtype, device());
}

absl::StatusOr<Tensor> Tensor::To(Device device) const {
  RETURN_IF_ERROR(CheckDefined("To(device)"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::To", "autograd::ToDevice"));
  if (this->device() == device) return *this;
  return ToRowMajor(dtype(), device);
}

absl::Status Tensor::CopyFrom(const Tensor& source) {
  RETURN_IF_ERROR(CheckDefined("CopyFrom()"));
  RETURN_IF_ERROR(source.CheckDefined("CopyFrom()"));
  for (const Tensor* operand : {static_cast<const Tensor*>(this), &source}) {
    RETURN_IF_ERROR(
        CheckKeepsGradient(*operand, "Tensor::CopyFrom", "autograd::CopyInto"));
  }
  if (shape() != source.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot copy ", source.ToString(), " into ", ToString()));
  }
  if (num_elements() == 0) return absl::OkStatus();
  if (MayOverlapItself(*this)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write to ", ToString(), ", strides ", strides().ToString(),
        ": some of its elements may be the same memory; Clone() it first"));
  }
  if (!MayOverlap(*this, source)) {
    RETURN_IF_ERROR(CopyDisjoint(*this, source));
  } else if (!SameLayout(*this, source)) {
    ASSIGN_OR_RETURN(const Tensor copy, source.Clone());
    RETURN_IF_ERROR(CopyDisjoint(*this, copy));
  }
  BumpVersion();
  return absl::OkStatus();
}

}  // namespace hawser::tensor
