#include "tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "async/check.h"

namespace hawser::tensor {
namespace {

absl::Status InvalidDims(std::span<const int64_t> dims, std::string_view why) {
  constexpr size_t kMostShown = 32;
  const size_t shown = std::min(dims.size(), kMostShown);
  return absl::InvalidArgumentError(absl::StrCat(
      "shape [", absl::StrJoin(absl::MakeConstSpan(dims.data(), shown), ", "),
      shown < dims.size() ? ", ...] " : "] ",
      absl::string_view(why.data(), why.size())));
}

// The product of the sizes other than 0, or -1 if it exceeds an int64 or a size
// is negative; `has_zero` tells whether there was a 0.
int64_t NonZeroProduct(std::span<const int64_t> dims, bool& has_zero) {
  int64_t product = 1;
  has_zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return -1;
    if (dim == 0) {
      has_zero = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return -1;
    }
  }
  return product;
}

}  // namespace

absl::StatusOr<Shape> Shape::Create(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidDims(dims, absl::StrCat("has ", dims.size(), " dimensions; ",
                                          kMaxRank, " is the limit")
                                 .c_str());
  }
  Shape shape(dims);
  if (auto count = shape.CheckedNumElements(); !count.ok()) {
    return count.status();
  }
  return shape;
}

int64_t Shape::num_elements() const {
  bool has_zero;
  const int64_t product = NonZeroProduct(span(), has_zero);
  HAWSER_CHECK(product >= 0)
      << "shape " << ToString() << " has no valid number of elements";
  return has_zero ? 0 : product;
}

absl::StatusOr<int64_t> Shape::CheckedNumElements() const {
  bool has_zero;
  const int64_t product = NonZeroProduct(span(), has_zero);
  if (product >= 0) return has_zero ? 0 : product;
  if (std::any_of(begin(), end(), [](int64_t dim) { return dim < 0; })) {
    return InvalidDims(span(), "has a negative dimension");
  }
  return InvalidDims(span(), "has more elements than an int64 counts");
}

Strides Strides::RowMajor(const Shape& shape) {
  Strides strides(shape.span());
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

bool IsRowMajor(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  bool row_major = true;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    row_major &= strides[i] == expected;
    expected *= shape[i];
  }
  return row_major;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int offset = longer.rank() - shorter.rank();
  Shape result = longer;
  for (int i = 0; i < shorter.rank(); ++i) {
    int64_t& dim = result[i + offset];
    if (dim == shorter[i] || shorter[i] == 1) continue;
    if (dim != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shapes ", a.ToString(), " and ", b.ToString(), " do not broadcast: ",
          dim, " against ", shorter[i], " in dimension ", i + offset));
    }
    dim = shorter[i];
  }
  if (auto count = result.CheckedNumElements(); !count.ok()) {
    return count.status();
  }
  return result;
}

absl::StatusOr<int> NormalizeDim(int dim, int rank) {
  if (dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  return absl::InvalidArgumentError(absl::StrCat(
      "dimension ", dim, " is out of range for a tensor of rank ", rank));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ToString();
}

std::ostream& operator<<(std::ostream& out, const Strides& strides) {
  return out << strides.ToString();
}

}  // namespace hawser::tensor
