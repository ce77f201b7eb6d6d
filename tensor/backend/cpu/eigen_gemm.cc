#include "tensor/backend/cpu/eigen_gemm.h"

#include "Eigen/Core"

namespace hawser::tensor::cpu {
namespace {

template <int kOrder>
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, kOrder>;
template <int kOrder>
using View =
    Eigen::Map<const Matrix<kOrder>, Eigen::Unaligned, Eigen::OuterStride<>>;

// Calls function(view) with an Eigen view of the matrix.
template <class F>
void WithView(const MatrixLayout& m, const double* data, F&& function) {
  if (m.col_stride == 1) {
    function(View<Eigen::RowMajor>(data, m.rows, m.cols,
                                   Eigen::OuterStride<>(m.row_stride)));
  } else {
    function(View<Eigen::ColMajor>(data, m.rows, m.cols,
                                   Eigen::OuterStride<>(m.col_stride)));
  }
}

}  // namespace

void MultiplyF64(const MatrixLayout& a_layout, const double* a,
                 const MatrixLayout& b_layout, const double* b, bool accumulate,
                 double* c) {
  Eigen::Map<Matrix<Eigen::RowMajor>> out(c, a_layout.rows, b_layout.cols);
  if (!accumulate) out.setZero();
  if (out.size() == 0 || a_layout.cols == 0) return;
  WithView(a_layout, a, [&](const auto& left) {
    WithView(b_layout, b,
             [&](const auto& right) { out.noalias() += left * right; });
  });
}

}  // namespace hawser::tensor::cpu
