// Products of f64 matrices by Eigen.
#ifndef HAWSER_TENSOR_BACKEND_CPU_EIGEN_GEMM_H_
#define HAWSER_TENSOR_BACKEND_CPU_EIGEN_GEMM_H_

#include "tensor/backend/cpu/matrix_layout.h"

namespace hawser::tensor::cpu {

// c = a b, or c += a b if `accumulate`. c is dense, row-major, and overlaps
// neither; layouts are is_blas(). Sizes may be 0.
void MultiplyF64(const MatrixLayout& a_layout, const double* a,
                 const MatrixLayout& b_layout, const double* b, bool accumulate,
                 double* c);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_EIGEN_GEMM_H_
