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
// kMaxRank sizes, and aborts when constructed from more: use Create() for
// untrusted sizes.
class Shape : public internal::DimArray {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : DimArray(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : DimArray(dims) {}

  // For untrusted sizes. kInvalidArgument if there are more than kMaxRank, one
  // is negative, or their product exceeds an int64.
  static absl::StatusOr<Shape> Create(std::span<const int64_t> dims);

  // The product of the sizes; 1 for rank 0. Aborts if CheckedNumElements()
  // returns an error.
  int64_t num_elements() const;

  // The product of the sizes. kInvalidArgument if one is negative, or if the
  // product of the nonzero sizes exceeds an int64.
  absl::StatusOr<int64_t> CheckedNumElements() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.Equals(b); }
};

// The strides of a tensor: the distance, in elements, between neighbours along
// each dimension.
class Strides : public internal::DimArray {
 public:
  Strides() = default;
  Strides(std::initializer_list<int64_t> strides)
      : DimArray(std::span<const int64_t>(strides.begin(), strides.size())) {}
  explicit Strides(std::span<const int64_t> strides) : DimArray(strides) {}

  // Returns the strides of a dense row-major tensor. A size of 0 counts as 1.
  static Strides RowMajor(const Shape& shape);

  friend bool operator==(const Strides& a, const Strides& b) {
    return a.Equals(b);
  }
};

// Whether elements are dense in row-major order. Ignores strides of dimensions
// of size 1, and all strides if there are no elements.
bool IsRowMajor(const Shape& shape, const Strides& strides);

// Returns the shape that both broadcast to: aligned at the last dimension, with
// sizes equal or one of them 1. kInvalidArgument, naming both shapes, if they
// do not broadcast.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// Converts a dimension in [-rank, rank) to one in [0, rank). kInvalidArgument
// if it is out of range.
absl::StatusOr<int> NormalizeDim(int dim, int rank);

std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Strides& strides);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_SHAPE_H_
