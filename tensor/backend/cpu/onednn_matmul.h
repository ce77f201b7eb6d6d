// Matrix products by oneDNN: its matmul primitive, created on first use and
// cached per shape and thread, or its sgemm where that is faster.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ONEDNN_MATMUL_H_
#define HAWSER_TENSOR_BACKEND_CPU_ONEDNN_MATMUL_H_

#include <array>
#include <cstdint>

#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

// Maximum number of dims of one primitive, including batch dims.
inline constexpr int kMaxMatMulRank = 6;

// out [..., m, n] = a [..., m, k] b [..., k, n] (+ bias [n]), all of `dtype`,
// kF32 or kBF16. The last two dims of a and b are MatrixLayout::is_blas(); a
// batch dim of size 1 repeats, others have a positive stride. `out` is dense.
// All sizes are positive.
struct MatMulShape {
  DType dtype = DType::kF32;
  bool bias = false;
  int rank = 2;
  std::array<int64_t, kMaxMatMulRank> a_dims;
  std::array<int64_t, kMaxMatMulRank> a_strides;
  std::array<int64_t, kMaxMatMulRank> b_dims;
  std::array<int64_t, kMaxMatMulRank> b_strides;
};

// Returns false, without doing anything, if oneDNN does not support this on
// this machine.
bool MultiplyOneDnn(const MatMulShape& shape, const void* a, const void* b,
                    const void* bias, void* out);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ONEDNN_MATMUL_H_
