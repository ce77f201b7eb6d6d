#include "tensor/ops/gather.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// Nowhere larger than `limit`, but perhaps in dim `except`.
bool FitsWithin(const Shape& shape, const Shape& limit, int except) {
  if (shape.rank() != limit.rank()) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != except && shape[d] > limit[d]) return false;
  }
  return true;
}

absl::Status CheckAddable(std::string_view name, const Tensor& a,
                          const Tensor& index, const Tensor& src) {
  RETURN_IF_ERROR(CheckSameDType(name, {{"a", a}, {"src", src}}));
  RETURN_IF_ERROR(CheckOperands(name, {{"a", a}, {"index", index}}));
  RETURN_IF_ERROR(CheckIds(name, {"index", index}));
  if (a.dtype() == DType::kBool) [[unlikely]] {
    return BadOperands(name, "not for bool", {{"a", a}});
  }
  return absl::OkStatus();
}

// A copy of `a` to add to.
absl::StatusOr<Tensor> Accumulator(const Tensor& a) {
  const DType dtype = SumDType(a.dtype());
  return dtype == a.dtype() ? a.Clone() : a.To(dtype);
}

}  // namespace

absl::StatusOr<Tensor> Gather(const Tensor& a, int64_t dim,
                              const Tensor& index) {
  const Operands operands = {{"a", a}, {"index", index}};
  RETURN_IF_ERROR(CheckOperands("Gather", operands));
  RETURN_IF_ERROR(CheckIds("Gather", {"index", index}));
  ASSIGN_OR_RETURN(const int d, ResolveDim("Gather", dim, a));
  if (!FitsWithin(index.shape(), a.shape(), d)) [[unlikely]] {
    return BadOperands("Gather", "index must fit within a but in dim",
                       operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(index.shape(), {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->Gather(a, d, index, out));
  return out;
}

absl::StatusOr<Tensor> ScatterAdd(const Tensor& a, int64_t dim,
                                  const Tensor& index, const Tensor& src) {
  RETURN_IF_ERROR(CheckAddable("ScatterAdd", a, index, src));
  ASSIGN_OR_RETURN(const int d, ResolveDim("ScatterAdd", dim, a));
  if (!FitsWithin(index.shape(), a.shape(), d) ||
      !FitsWithin(index.shape(), src.shape(), -1)) [[unlikely]] {
    return BadOperands("ScatterAdd",
                       "index must fit within src, and within a but in dim",
                       {{"a", a}, {"index", index}, {"src", src}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor sum, Accumulator(a));
  ASSIGN_OR_RETURN(const Tensor addends, src.To(sum.dtype()));
  RETURN_IF_ERROR(backend->ScatterAdd(d, index, addends, sum));
  return sum.To(a.dtype());
}

absl::StatusOr<Tensor> IndexSelect(const Tensor& a, int64_t dim,
                                   const Tensor& index) {
  const Operands operands = {{"a", a}, {"index", index}};
  RETURN_IF_ERROR(CheckOperands("IndexSelect", operands));
  RETURN_IF_ERROR(CheckIds("IndexSelect", {"index", index}));
  ASSIGN_OR_RETURN(const int d, ResolveDim("IndexSelect", dim, a));
  if (index.rank() != 1) [[unlikely]] {
    return BadOperands("IndexSelect", "index must have one dim", operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  Shape shape = a.shape();
  shape[d] = index.dim(0);
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(shape, {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->IndexSelect(a, d, index, out));
  return out;
}

absl::StatusOr<Tensor> IndexAdd(const Tensor& a, int64_t dim,
                                const Tensor& index, const Tensor& src) {
  RETURN_IF_ERROR(CheckAddable("IndexAdd", a, index, src));
  ASSIGN_OR_RETURN(const int d, ResolveDim("IndexAdd", dim, a));
  Shape expected = a.shape();
  if (index.rank() == 1) expected[d] = index.dim(0);
  if (index.rank() != 1 || src.shape() != expected) [[unlikely]] {
    return BadOperands("IndexAdd",
                       "index must be [n] and src as a, with n in dim",
                       {{"a", a}, {"index", index}, {"src", src}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor sum, Accumulator(a));
  ASSIGN_OR_RETURN(const Tensor addends, src.To(sum.dtype()));
  RETURN_IF_ERROR(backend->IndexAdd(d, index, addends, sum));
  return sum.To(a.dtype());
}

}  // namespace hawser::tensor
