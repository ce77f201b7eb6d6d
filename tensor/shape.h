// Sizes and strides of tensors.

#ifndef HAWSER_TENSOR_SHAPE_H_
#define HAWSER_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "absl/status/statusor.h"
#include "tensor/internal/dim_array.h"

namespace hawser::tensor {

// The ordered sizes of a tensor's dimensions; rank 0 is a scalar. Holds at most
// kMaxRank sizes, and aborts when built from more: sizes that come from outside
// pass through Create() first.
class Shape : public internal::DimArray {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : DimArray(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : DimArray(dims) {}

  // For sizes that cannot be trusted. kInvalidArgument if there are more than
  // kMaxRank, one is negative, or their product exceeds an int64.
  static absl::StatusOr<Shape> Create(std::span<const int64_t> dims);

  // The product of the sizes; 1 for rank 0. Aborts where CheckedNumElements()
  // gives an error.
  int64_t num_elements() const;

  // The product of the sizes. kInvalidArgument if one is negative, or if the
  // product (of those that are not 0) exceeds an int64.
  absl::StatusOr<int64_t> CheckedNumElements() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.Equals(b); }
};

// The distances, in elements, between neighbours along each dimension.
class Strides : public internal::DimArray {
 public:
  Strides() = default;
  Strides(std::initializer_list<int64_t> strides)
      : DimArray(std::span<const int64_t>(strides.begin(), strides.size())) {}
  explicit Strides(std::span<const int64_t> strides) : DimArray(strides) {}

  // Those of a dense row-major tensor. A size of 0 counts as 1.
  static Strides RowMajor(const Shape& shape);

  friend bool operator==(const Strides& a, const Strides& b) {
    return a.Equals(b);
  }
};

// Whether elements lie densely in row-major order. The stride of a dimension of
// size 1 does not matter, nor does any stride if there are no elements.
bool IsRowMajor(const Shape& shape, const Strides& strides);

// The shape that both broadcast to: aligned at the last dimension, sizes equal
// or one of them 1. kInvalidArgument, naming both shapes, if there is none.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// Turns a dimension in [-rank, rank) into one in [0, rank). kInvalidArgument if
// it is out of range.
absl::StatusOr<int> NormalizeDim(int dim, int rank);

std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Strides& strides);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_SHAPE_H_
