// Tensors to test operations with, and their elements as doubles.
#ifndef HAWSER_TENSOR_OPS_TEST_TENSORS_H_
#define HAWSER_TENSOR_OPS_TEST_TENSORS_H_

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

inline constexpr DType kFloatDTypes[] = {DType::kF32, DType::kF64, DType::kF16,
                                         DType::kBF16};

// The elements in row-major order.
std::vector<double> Values(const Tensor& t);

Tensor FromValues(const std::vector<double>& values, const Shape& shape,
                  DType dtype = DType::kF32);

// Pseudo-random elements of `dtype` in [low, high], whole for integers; the
// same for the same arguments.
Tensor TestTensor(const Shape& shape, DType dtype = DType::kF32,
                  uint32_t seed = 1, double low = -2, double high = 2);

// Tensors equal to `t` that lie in memory in other ways: `t` itself, with its
// dims in reverse order, as every second element of a larger one, and from an
// odd offset on.
std::vector<Tensor> Layouts(const Tensor& t);

// By how much a result of `dtype` may differ from one in double, relative to
// the larger of 1 and its magnitude.
double Tolerance(DType dtype);

// Shape and elements, within `tolerance` (0: Tolerance() of the dtype); NaN
// equals NaN.
void ExpectTensor(const Tensor& t, const Shape& shape,
                  const std::vector<double>& expected, double tolerance = 0);

// Calls visit(index) for every index of `shape`, in row-major order.
template <class Visit>
void ForEachIndex(const Shape& shape, Visit&& visit) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    visit(static_cast<const std::vector<int64_t>&>(index));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}

// The position of `index` in `shape`, where it broadcasts: its last dims count,
// and those of size 1 do not.
int64_t PositionOf(const std::vector<int64_t>& index, const Shape& shape);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_TEST_TENSORS_H_
