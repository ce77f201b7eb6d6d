// Index arithmetic over strided operands iterated together.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_INDEX_PLAN_H_
#define HAWSER_TENSOR_BACKEND_CUDA_INDEX_PLAN_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// Maps the elements of one shape to offsets in each of `N` operands. Passed to
// kernels by value.
template <int N>
struct IndexPlan {
  int rank = 0;
  int64_t count = 1;  // Number of elements of the shape.
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank][N] = {};

  struct Offsets {
    int64_t at[N];
  };

  // Adds an innermost dim, merged with the previous one if each operand is
  // dense across both.
  void Append(int64_t size, const std::array<int64_t, N>& steps) {
    count *= size;
    if (size == 1) return;
    bool merges = rank > 0;
    for (int n = 0; n < N && merges; ++n) {
      merges = strides[rank - 1][n] == steps[static_cast<size_t>(n)] * size;
    }
    if (!merges) sizes[rank++] = 1;
    sizes[rank - 1] *= size;
    for (int n = 0; n < N; ++n) {
      strides[rank - 1][n] = steps[static_cast<size_t>(n)];
    }
  }

  // The offsets of element `i` in row-major order.
  __host__ __device__ Offsets operator()(int64_t i) const {
    // 64-bit divisions take several times as long.
    return count <= int64_t{UINT32_MAX} ? Locate(static_cast<uint32_t>(i))
                                        : Locate(static_cast<uint64_t>(i));
  }

 private:
  template <class Index>
  __host__ __device__ Offsets Locate(Index i) const {
    Offsets offsets = {};
    for (int d = rank - 1; d >= 0; --d) {
      Index here = i;
      if (d > 0) {
        const Index size = static_cast<Index>(sizes[d]);
        i = here / size;
        here -= i * size;
      }
      for (int n = 0; n < N; ++n) {
        offsets.at[n] += static_cast<int64_t>(here) * strides[d][n];
      }
    }
    return offsets;
  }
};

// Stride, in elements, of `operand` along dim `d` of the `shape` that it
// broadcasts to.
inline int64_t BroadcastStride(const Tensor& operand, const Shape& shape,
                               int d) {
  const int own = d - (shape.rank() - operand.rank());
  if (own < 0 || operand.shape()[own] == 1) return 0;
  return operand.strides()[own];
}

// All operands broadcast to `shape`.
template <int N>
IndexPlan<N> MakePlan(const Shape& shape,
                      const std::array<const Tensor*, N>& operands) {
  IndexPlan<N> plan;
  for (int d = 0; d < shape.rank(); ++d) {
    std::array<int64_t, N> steps;
    for (size_t n = 0; n < N; ++n) {
      steps[n] = BroadcastStride(*operands[n], shape, d);
    }
    plan.Append(shape[d], steps);
  }
  return plan;
}

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_INDEX_PLAN_H_
