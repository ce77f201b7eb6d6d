#include "tensor/ops/join.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// Dtypes, devices and ranks agree with those of the first.
absl::Status CheckAlike(std::string_view name,
                        std::span<const Tensor> tensors) {
  if (tensors.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::string_view(name.data(), name.size()), ": no tensors"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string position = absl::StrCat("tensor ", i);
    const Operands pair = {{"tensor 0", tensors[0]}, {position, tensors[i]}};
    RETURN_IF_ERROR(CheckSameDType(name, pair));
    if (tensors[i].rank() != tensors[0].rank()) {
      return BadOperands(name, "ranks differ", pair);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ConcatChecked(std::span<const Tensor> tensors, int dim) {
  Shape shape = tensors[0].shape();
  shape[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape rest = tensors[i].shape();
    const int64_t size = rest[dim];
    rest[dim] = shape[dim];
    if (rest != shape) {
      return BadOperands(
          "Concat", absl::StrCat("shapes differ beyond dim ", dim),
          {{"tensor 0", tensors[0]}, {absl::StrCat("tensor ", i), tensors[i]}});
    }
    shape[dim] += size;
  }
  ASSIGN_OR_RETURN(
      const Tensor out,
      Tensor::TryEmpty(shape, {tensors[0].dtype(), tensors[0].device()}));
  int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    ASSIGN_OR_RETURN(Tensor part, out.Narrow(dim, start, tensor.dim(dim)));
    RETURN_IF_ERROR(part.CopyFrom(tensor));
    start += tensor.dim(dim);
  }
  return out;
}

}  // namespace

absl::StatusOr<Tensor> Concat(std::span<const Tensor> tensors, int64_t dim) {
  RETURN_IF_ERROR(CheckAlike("Concat", tensors));
  ASSIGN_OR_RETURN(const int d, ResolveDim("Concat", dim, tensors[0]));
  return ConcatChecked(tensors, d);
}

absl::StatusOr<Tensor> Stack(std::span<const Tensor> tensors, int64_t dim) {
  RETURN_IF_ERROR(CheckAlike("Stack", tensors));
  const int rank = tensors[0].rank();
  if (dim < -rank - 1 || dim > rank || rank == kMaxRank) {
    return BadOperands("Stack", absl::StrCat("no new dim at ", dim),
                       {{"tensor 0", tensors[0]}});
  }
  const int d = static_cast<int>(dim < 0 ? dim + rank + 1 : dim);
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shape() != tensors[0].shape()) {
      return BadOperands(
          "Stack", "shapes differ",
          {{"tensor 0", tensors[0]}, {absl::StrCat("tensor ", i), tensors[i]}});
    }
    ASSIGN_OR_RETURN(Tensor part, tensors[i].Unsqueeze(d));
    parts.push_back(std::move(part));
  }
  return ConcatChecked(parts, d);
}

absl::StatusOr<std::vector<Tensor>> Split(const Tensor& a,
                                          std::span<const int64_t> sizes,
                                          int64_t dim) {
  RETURN_IF_ERROR(CheckOperands("Split", {{"a", a}}));
  ASSIGN_OR_RETURN(const int d, ResolveDim("Split", dim, a));
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  int64_t left = a.dim(d);
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) {
      return BadOperands("Split",
                         absl::StrCat("a part of ", size, " where ", left,
                                      " are left in dim ", d),
                         {{"a", a}});
    }
    ASSIGN_OR_RETURN(Tensor part, a.Narrow(d, a.dim(d) - left, size));
    parts.push_back(std::move(part));
    left -= size;
  }
  if (left != 0) {
    return BadOperands("Split",
                       absl::StrCat("the sizes leave ", left, " of dim ", d),
                       {{"a", a}});
  }
  return parts;
}

}  // namespace hawser::tensor
