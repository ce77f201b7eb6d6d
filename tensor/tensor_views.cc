// The members of Tensor that make views.

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "async/status_macros.h"
#include "tensor/lost_gradient.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// `shape` with its -1 replaced by what makes it hold `num_elements`.
absl::StatusOr<Shape> InferShape(const Tensor& tensor, const Shape& shape) {
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", tensor.ToString(), " to ",
                     shape.ToString(), ": numbers of elements differ"));
  };
  Shape inferred = shape;
  int unknown = -1;
  for (int i = 0; i < inferred.rank(); ++i) {
    if (inferred[i] != -1) continue;
    if (unknown >= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot reshape to ", shape.ToString(), ": more than one -1"));
    }
    unknown = i;
    inferred[i] = 1;
  }
  ASSIGN_OR_RETURN(const int64_t known, inferred.CheckedNumElements());
  const int64_t num_elements = tensor.num_elements();
  if (unknown < 0) {
    if (known != num_elements) return mismatch();
    return inferred;
  }
  if (known == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", tensor.ToString(), " to ",
                     shape.ToString(), ": the -1 could be any size"));
  }
  if (num_elements % known != 0) return mismatch();
  inferred[unknown] = num_elements / known;
  return inferred;
}

// The strides with which the elements of `tensor` have `shape`, which holds as
// many; nothing if there are none.
//
// Dimensions of the tensor that step evenly form chunks; every chunk must be
// the product of consecutive sizes of `shape`.
std::optional<Strides> StridesForView(const Tensor& tensor,
                                      const Shape& shape) {
  if (tensor.is_contiguous()) return Strides::RowMajor(shape);
  const Shape& old_shape = tensor.shape();
  const Strides& old_strides = tensor.strides();
  Strides strides(shape.span());
  int next = shape.rank() - 1;
  int64_t chunk_elements = 1;
  int64_t chunk_stride = old_strides[tensor.rank() - 1];
  for (int i = tensor.rank() - 1; i >= 0; --i) {
    chunk_elements *= old_shape[i];
    const bool chunk_ends =
        i == 0 || (old_shape[i - 1] != 1 &&
                   old_strides[i - 1] != chunk_elements * chunk_stride);
    if (!chunk_ends) continue;
    int64_t covered = 1;
    while (next >= 0 && (covered < chunk_elements || shape[next] == 1)) {
      strides[next] = covered * chunk_stride;
      covered *= shape[next];
      --next;
    }
    if (covered != chunk_elements) return std::nullopt;
    if (i > 0) {
      chunk_elements = 1;
      chunk_stride = old_strides[i - 1];
    }
  }
  return next < 0 ? std::optional<Strides>(strides) : std::nullopt;
}

}  // namespace

absl::StatusOr<Tensor> Tensor::View(const Shape& shape) const {
  RETURN_IF_ERROR(CheckDefined("View()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::View", "autograd::Reshape"));
  ASSIGN_OR_RETURN(const Shape inferred, InferShape(*this, shape));
  const std::optional<Strides> strides = StridesForView(*this, inferred);
  if (!strides) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no view of ", ToString(), ", strides ", this->strides().ToString(),
        ", has shape ", inferred.ToString(), "; Reshape() copies"));
  }
  return MakeView(storage_offset(), inferred, *strides);
}

absl::StatusOr<Tensor> Tensor::Reshape(const Shape& shape) const {
  RETURN_IF_ERROR(CheckDefined("Reshape()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Reshape", "autograd::Reshape"));
  ASSIGN_OR_RETURN(const Shape inferred, InferShape(*this, shape));
  if (const auto strides = StridesForView(*this, inferred)) {
    return MakeView(storage_offset(), inferred, *strides);
  }
  ASSIGN_OR_RETURN(const Tensor copy, Clone());
  return copy.MakeView(0, inferred, Strides::RowMajor(inferred));
}

absl::StatusOr<Tensor> Tensor::Transpose(int dim0, int dim1) const {
  RETURN_IF_ERROR(CheckDefined("Transpose()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Transpose", "autograd::Transpose"));
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim0, rank()));
  ASSIGN_OR_RETURN(const int j, NormalizeDim(dim1, rank()));
  Shape shape = this->shape();
  Strides strides = this->strides();
  std::swap(shape[i], shape[j]);
  std::swap(strides[i], strides[j]);
  return MakeView(storage_offset(), shape, strides);
}

absl::StatusOr<Tensor> Tensor::T() const {
  RETURN_IF_ERROR(CheckDefined("T()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::T", "autograd::Transpose"));
  if (rank() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("T() of ", ToString(), ", which is not a matrix"));
  }
  return Transpose(0, 1);
}

absl::StatusOr<Tensor> Tensor::Permute(std::span<const int> dims) const {
  RETURN_IF_ERROR(CheckDefined("Permute()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Permute", "autograd::Permute"));
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "dimensions [",
        absl::StrJoin(absl::MakeConstSpan(dims.data(), dims.size()), ", "),
        "] do not permute those of ", ToString()));
  };
  if (dims.size() != static_cast<size_t>(rank())) return invalid();
  Shape shape;
  Strides strides;
  uint32_t seen = 0;
  for (const int dim : dims) {
    ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank()));
    if ((seen >> i & 1u) != 0) return invalid();
    seen |= 1u << i;
    shape.Append(this->shape()[i]);
    strides.Append(this->strides()[i]);
  }
  return MakeView(storage_offset(), shape, strides);
}

absl::StatusOr<Tensor> Tensor::Slice(int dim, int64_t start, int64_t end,
                                     int64_t step) const {
  RETURN_IF_ERROR(CheckDefined("Slice()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Slice", "autograd::Slice"));
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank()));
  if (step < 1) {
    return absl::InvalidArgumentError(absl::StrCat("Slice() of ", ToString(),
                                                   " with step ", step,
                                                   "; it must be at least 1"));
  }
  const int64_t size = this->shape()[i];
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<int64_t>(start, 0, size);
  end = std::clamp<int64_t>(end, start, size);
  Shape shape = this->shape();
  Strides strides = this->strides();
  shape[i] = start == end ? 0 : (end - start - 1) / step + 1;
  // A step beyond the size leaves one element, whose stride does not matter.
  if (shape[i] > 1) strides[i] *= step;
  const int64_t offset = shape[i] == 0 ? 0 : start * this->strides()[i];
  return MakeView(storage_offset() + offset, shape, strides);
}

absl::StatusOr<Tensor> Tensor::Select(int dim, int64_t index) const {
  RETURN_IF_ERROR(CheckDefined("Select()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Select", "autograd::Select"));
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank()));
  const int64_t size = this->shape()[i];
  if (index < -size || index >= size) {
    return absl::OutOfRangeError(
        absl::StrCat("index ", index, " in dimension ", i, " of ", ToString()));
  }
  if (index < 0) index += size;
  Shape shape = this->shape();
  Strides strides = this->strides();
  const int64_t offset = storage_offset() + index * strides[i];
  shape.Erase(i);
  strides.Erase(i);
  return MakeView(offset, shape, strides);
}

absl::StatusOr<Tensor> Tensor::Narrow(int dim, int64_t start,
                                      int64_t length) const {
  RETURN_IF_ERROR(CheckDefined("Narrow()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Narrow", "autograd::Narrow"));
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank()));
  const int64_t size = this->shape()[i];
  if (start < 0 || length < 0 || start > size || length > size - start) {
    return absl::OutOfRangeError(absl::StrCat("indices [", start, ", ", start,
                                              " + ", length, ") in dimension ",
                                              i, " of ", ToString()));
  }
  return Slice(i, start, start + length);
}

absl::StatusOr<Tensor> Tensor::Expand(const Shape& shape) const {
  RETURN_IF_ERROR(CheckDefined("Expand()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Expand", "autograd::Expand"));
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot expand ", ToString(), " to ", shape.ToString()));
  };
  const int added = shape.rank() - rank();
  if (added < 0) return invalid();
  Shape expanded = shape;
  Strides strides(shape.span());
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < added) {
      strides[i] = 0;
      continue;
    }
    const int64_t size = this->shape()[i - added];
    if (expanded[i] == -1) expanded[i] = size;
    if (size != 1 && expanded[i] != size) return invalid();
    strides[i] = expanded[i] == size ? this->strides()[i - added] : 0;
  }
  RETURN_IF_ERROR(expanded.CheckedNumElements());
  return MakeView(storage_offset(), expanded, strides);
}

absl::StatusOr<Tensor> Tensor::Squeeze() const {
  RETURN_IF_ERROR(CheckDefined("Squeeze()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Squeeze", "autograd::Squeeze"));
  Shape shape;
  Strides strides;
  for (int i = 0; i < rank(); ++i) {
    if (this->shape()[i] == 1) continue;
    shape.Append(this->shape()[i]);
    strides.Append(this->strides()[i]);
  }
  return MakeView(storage_offset(), shape, strides);
}

absl::StatusOr<Tensor> Tensor::Squeeze(int dim) const {
  RETURN_IF_ERROR(CheckDefined("Squeeze()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Squeeze", "autograd::Squeeze"));
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank()));
  Shape shape = this->shape();
  Strides strides = this->strides();
  if (shape[i] == 1) {
    shape.Erase(i);
    strides.Erase(i);
  }
  return MakeView(storage_offset(), shape, strides);
}

absl::StatusOr<Tensor> Tensor::Unsqueeze(int dim) const {
  RETURN_IF_ERROR(CheckDefined("Unsqueeze()"));
  RETURN_IF_ERROR(
      CheckKeepsGradient(*this, "Tensor::Unsqueeze", "autograd::Unsqueeze"));
  if (rank() == kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Unsqueeze() of ", ToString(), ", which has the highest rank"));
  }
  ASSIGN_OR_RETURN(const int i, NormalizeDim(dim, rank() + 1));
  Shape shape = this->shape();
  Strides strides = this->strides();
  // As if it were outside the dimension it stands before, which keeps dense
  // tensors dense in other frameworks' eyes.
  const int64_t stride = i == rank() ? 1 : shape[i] * strides[i];
  shape.Insert(i, 1);
  strides.Insert(i, stride);
  return MakeView(storage_offset(), shape, strides);
}

}  // namespace hawser::tensor
