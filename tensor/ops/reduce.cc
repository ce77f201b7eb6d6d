#include "tensor/ops/reduce.h"

#include <bitset>
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
#include "tensor/recording_mode.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using DimSet = std::bitset<kMaxRank>;

absl::StatusOr<DimSet> ResolveDims(std::string_view name, const Tensor& a,
                                   DimSpan dims) {
  DimSet set;
  if (dims.empty()) return set.set();
  for (const int64_t dim : dims) {
    ASSIGN_OR_RETURN(const int d, ResolveDim(name, dim, a));
    if (set[d]) [[unlikely]] {
      return BadOperands(name, absl::StrCat("dim ", dim, " is named twice"),
                         {{"a", a}});
    }
    set.set(d);
  }
  return set;
}

// `shape` with 1 for the dims of `set`, or without them.
Shape ReducedShape(const Shape& shape, const DimSet& set, bool keepdim) {
  Shape result;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!set[d]) {
      result.Append(shape[d]);
    } else if (keepdim) {
      result.Append(1);
    }
  }
  return result;
}

absl::StatusOr<Tensor> RunReduce(std::string_view name, ReduceOp op,
                                 const Tensor& a, DimSpan dims, bool keepdim) {
  RETURN_IF_ERROR(CheckOperands(name, {{"a", a}}));
  const bool needs_float = op == ReduceOp::kMean;
  if (a.dtype() == DType::kBool || (needs_float && !IsFloatingPoint(a.dtype())))
      [[unlikely]] {
    return BadOperands(name, "not for this dtype", {{"a", a}});
  }
  ASSIGN_OR_RETURN(const DimSet set, ResolveDims(name, a, dims));
  const Shape kept = ReducedShape(a.shape(), set, /*keepdim=*/true);
  const bool needs_elements = op == ReduceOp::kMax || op == ReduceOp::kMin;
  if (needs_elements && a.num_elements() == 0 && kept.num_elements() != 0)
      [[unlikely]] {
    return BadOperands(name, "there is nothing to choose from", {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out, Tensor::TryEmpty(kept, {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->Reduce(op, a, out));
  if (keepdim || kept.rank() == 0) return out;
  return out.View(ReducedShape(a.shape(), set, /*keepdim=*/false));
}

}  // namespace

absl::StatusOr<Tensor> Sum(const Tensor& a, DimSpan dims, bool keepdim) {
  return RunReduce("Sum", ReduceOp::kSum, a, dims, keepdim);
}
absl::StatusOr<Tensor> Mean(const Tensor& a, DimSpan dims, bool keepdim) {
  return RunReduce("Mean", ReduceOp::kMean, a, dims, keepdim);
}
absl::StatusOr<Tensor> Max(const Tensor& a, DimSpan dims, bool keepdim) {
  return RunReduce("Max", ReduceOp::kMax, a, dims, keepdim);
}
absl::StatusOr<Tensor> Min(const Tensor& a, DimSpan dims, bool keepdim) {
  return RunReduce("Min", ReduceOp::kMin, a, dims, keepdim);
}

absl::StatusOr<Tensor> ArgMax(const Tensor& a, int64_t dim, bool keepdim) {
  const RawOperationsScope raw;  // Its result has no gradient.
  RETURN_IF_ERROR(CheckOperands("ArgMax", {{"a", a}}));
  if (a.rank() == 0 && (dim == 0 || dim == -1)) {
    ASSIGN_OR_RETURN(const Tensor row, a.View({1}));
    return ArgMax(row, 0);
  }
  if (a.dtype() == DType::kBool) [[unlikely]] {
    return BadOperands("ArgMax", "not for this dtype", {{"a", a}});
  }
  ASSIGN_OR_RETURN(const int d, ResolveDim("ArgMax", dim, a));
  Shape kept = a.shape();
  kept[d] = 1;
  if (a.num_elements() == 0 && kept.num_elements() != 0) [[unlikely]] {
    return BadOperands("ArgMax", "there is nothing to choose from", {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(kept, {DType::kI64, a.device()}));
  RETURN_IF_ERROR(backend->ArgMax(a, d, out));
  if (keepdim) return out;
  return out.Squeeze(d);
}

absl::StatusOr<Tensor> SumTo(const Tensor& a, const Shape& shape) {
  RETURN_IF_ERROR(CheckOperands("SumTo", {{"a", a}}));
  if (a.shape() == shape) return a;
  const absl::StatusOr<Shape> broadcast = BroadcastShapes(a.shape(), shape);
  if (!broadcast.ok() || *broadcast != a.shape()) [[unlikely]] {
    return BadOperands("SumTo",
                       absl::StrCat("does not come from ", shape.ToString()),
                       {{"a", a}});
  }
  const int leading = a.rank() - shape.rank();
  int64_t dims[kMaxRank];
  size_t count = 0;
  for (int d = 0; d < a.rank(); ++d) {
    if (d < leading || (shape[d - leading] == 1 && a.shape()[d] != 1)) {
      dims[count++] = d;
    }
  }
  ASSIGN_OR_RETURN(const Tensor sum, Sum(a, DimSpan(dims, count), true));
  return sum.View(shape);
}

absl::StatusOr<Tensor> Norm(const Tensor& a, double p) {
  RETURN_IF_ERROR(CheckFloating("Norm", {{"a", a}}));
  if (!(p > 0)) [[unlikely]] {
    return BadOperands("Norm", absl::StrCat("p = ", p, " is not above 0"),
                       {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(Shape(), {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->Norm(a, p, out));
  return out;
}

}  // namespace hawser::tensor
