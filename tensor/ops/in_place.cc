#include "tensor/ops/in_place.h"

#include <cmath>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// Whether `b` broadcasts to the shape of `a` as it is.
bool BroadcastsTo(const Tensor& b, const Tensor& a) {
  if (b.shape() == a.shape()) return true;
  const absl::StatusOr<Shape> shape = BroadcastShapes(a.shape(), b.shape());
  return shape.ok() && *shape == a.shape();
}

// A dim that repeats its elements.
bool HasBroadcastDim(const Tensor& a) {
  if (a.is_contiguous()) return false;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.strides()[d] == 0 && a.shape()[d] > 1) return true;
  }
  return false;
}

absl::Status CheckTarget(std::string_view name, Operands operands) {
  RETURN_IF_ERROR(CheckSameDType(name, operands));
  if (HasBroadcastDim(operands.begin()->tensor)) [[unlikely]] {
    return BadOperands(name, "a is a broadcast view", operands);
  }
  return absl::OkStatus();
}

absl::Status CheckPair(std::string_view name, const Tensor& a,
                       const Tensor& b) {
  RETURN_IF_ERROR(CheckTarget(name, {{"a", a}, {"b", b}}));
  if (!BroadcastsTo(b, a)) [[unlikely]] {
    return BadOperands(name, "b does not broadcast to a", {{"a", a}, {"b", b}});
  }
  if (a.dtype() == DType::kBool) [[unlikely]] {
    return BadOperands(name, "not for bool", {{"a", a}, {"b", b}});
  }
  return absl::OkStatus();
}

// Whether `dtype` has `value`, to rounding where it is floating point.
bool Holds(DType dtype, double value) {
  if (IsFloatingPoint(dtype)) return true;
  if (value != std::trunc(value)) return false;
  switch (dtype) {
    case DType::kI64:
      return value >= -0x1p63 && value < 0x1p63;
    case DType::kI32:
      return value >= -0x1p31 && value < 0x1p31;
    case DType::kU8:
      return value >= 0 && value < 0x1p8;
    default:
      return value == 0 || value == 1;
  }
}

}  // namespace

absl::Status AddInPlace(Tensor& a, const Tensor& b, double alpha) {
  RETURN_IF_ERROR(CheckPair("AddInPlace", a, b));
  // Larger whole numbers are not exact as doubles.
  const bool whole = alpha == std::trunc(alpha) && std::fabs(alpha) <= 0x1p53;
  if (!IsFloatingPoint(a.dtype()) && !whole) [[unlikely]] {
    return BadOperands("AddInPlace",
                       absl::StrCat("alpha ", alpha, " is no whole number"),
                       {{"a", a}, {"b", b}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  a.BumpVersion();
  return backend->AddScaled(a, b, alpha, a);
}

absl::Status MulInPlace(Tensor& a, const Tensor& b) {
  RETURN_IF_ERROR(CheckPair("MulInPlace", a, b));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  a.BumpVersion();
  return backend->Binary(BinaryOp::kMul, a, b, a);
}

absl::Status MulScalarInPlace(Tensor& a, double value) {
  RETURN_IF_ERROR(CheckTarget("MulScalarInPlace", {{"a", a}}));
  if (!IsFloatingPoint(a.dtype())) [[unlikely]] {
    return BadOperands("MulScalarInPlace", "needs a floating-point dtype",
                       {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  a.BumpVersion();
  return backend->BinaryScalar(BinaryOp::kMul, a, value, a);
}

absl::Status FillInPlace(Tensor& a, double value) {
  RETURN_IF_ERROR(CheckTarget("FillInPlace", {{"a", a}}));
  if (!Holds(a.dtype(), value)) [[unlikely]] {
    return BadOperands("FillInPlace",
                       absl::StrCat("the dtype does not hold ", value),
                       {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  a.BumpVersion();
  return backend->Fill(value, a);
}

absl::Status CopyInto(Tensor& dst, const Tensor& src) {
  RETURN_IF_ERROR(CheckOperands("CopyInto", {{"dst", dst}, {"src", src}}));
  if (!BroadcastsTo(src, dst)) [[unlikely]] {
    return BadOperands("CopyInto", "src does not broadcast to dst",
                       {{"dst", dst}, {"src", src}});
  }
  if (src.shape() == dst.shape()) return dst.CopyFrom(src);
  ASSIGN_OR_RETURN(const Tensor expanded, src.Expand(dst.shape()));
  return dst.CopyFrom(expanded);
}

}  // namespace hawser::tensor
