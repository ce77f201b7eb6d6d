// Memory layout of a matrix, in the terms of BLAS.
#ifndef HAWSER_TENSOR_BACKEND_CPU_MATRIX_LAYOUT_H_
#define HAWSER_TENSOR_BACKEND_CPU_MATRIX_LAYOUT_H_

#include <cstdint>

namespace hawser::tensor::cpu {

struct MatrixLayout {
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;

  // Row-major or column-major, perhaps with a gap between lines.
  bool is_blas() const {
    return (col_stride == 1 && row_stride >= cols) ||
           (row_stride == 1 && col_stride >= rows);
  }

  // Sets the strides of dims of size 1, which are never used, so that is_blas()
  // holds if possible.
  MatrixLayout Canonical() const {
    MatrixLayout result = *this;
    if (cols == 1) {
      result.col_stride = 1;
    } else if (rows == 1) {
      result.row_stride = col_stride == 1 ? cols : 1;
    }
    return result;
  }
};

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_MATRIX_LAYOUT_H_
