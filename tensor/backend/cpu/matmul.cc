// Matrix products: oneDNN for f32 and bf16, Eigen for f64. 16-bit types without
// hardware support are computed in f32.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/eigen_gemm.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/backend/cpu/matrix_layout.h"
#include "tensor/backend/cpu/onednn_matmul.h"
#include "tensor/backend/cpu/vector_bias.h"
#include "tensor/backend/cpu/vector_elementwise.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {
namespace {

MatrixLayout LastDims(const Tensor& t) {
  const int rank = t.rank();
  return MatrixLayout{t.dim(-2), t.dim(-1), t.strides()[rank - 2],
                      t.strides()[rank - 1]}
      .Canonical();
}

// Returns `t`, or a copy of it, such that its last two dims are is_blas() and
// its batch dims have no stride 0.
absl::StatusOr<Tensor> WithBlasLayout(const Tensor& t) {
  bool fits = LastDims(t).is_blas();
  for (int d = 0; d < t.rank() - 2; ++d) {
    if (t.strides()[d] == 0 && t.shape()[d] != 1) fits = false;
  }
  if (fits) return t;
  return t.Clone();
}

void SetZero(Tensor& out) {
  if (out.byte_size() == 0) return;
  std::memset(out.raw_data(), 0, static_cast<size_t>(out.byte_size()));
}

MatMulShape ShapeOf(const Tensor& a, const Tensor& b, bool bias) {
  MatMulShape shape;
  shape.dtype = a.dtype();
  shape.bias = bias;
  shape.rank = a.rank();
  for (int d = 0; d < a.rank() - 2; ++d) {
    shape.a_dims[d] = a.shape()[d];
    shape.a_strides[d] = std::max<int64_t>(a.strides()[d], 1);
    shape.b_dims[d] = b.shape()[d];
    shape.b_strides[d] = std::max<int64_t>(b.strides()[d], 1);
  }
  const MatrixLayout left = LastDims(a), right = LastDims(b);
  const int d = a.rank() - 2;
  shape.a_dims[d] = left.rows;
  shape.a_dims[d + 1] = left.cols;
  shape.a_strides[d] = left.row_stride;
  shape.a_strides[d + 1] = left.col_stride;
  shape.b_dims[d] = right.rows;
  shape.b_dims[d + 1] = right.cols;
  shape.b_strides[d] = right.row_stride;
  shape.b_strides[d + 1] = right.col_stride;
  return shape;
}

// A view of the first element of every matrix of a batch.
Tensor FirstOfMatrices(const Tensor& t) {
  Tensor view = t;
  for (int i = 0; i < 2; ++i) view = *view.Narrow(t.rank() - 1 - i, 0, 1);
  return view;
}

// Computes the products of a batch sequentially.
template <class Multiply>
void ForEachMatrix(const Tensor& a, const Tensor& b, Tensor& out,
                   Multiply&& multiply) {
  const Tensor a0 = FirstOfMatrices(a), b0 = FirstOfMatrices(b),
               out0 = FirstOfMatrices(out);
  const LoopPlan<3> plan(out0.shape(), {&a0, &b0, &out0});
  plan.ForEachRow([&](const auto& offsets) {
    for (int64_t i = 0; i < plan.row_size(); ++i) {
      multiply(offsets[0] + i * plan.row_stride(0),
               offsets[1] + i * plan.row_stride(1),
               offsets[2] + i * plan.row_stride(2));
    }
  });
}

void MatMulF64(const Tensor& a, const Tensor& b, Tensor& out) {
  const MatrixLayout left = LastDims(a), right = LastDims(b);
  const double* const a_data = a.data<double>();
  const double* const b_data = b.data<double>();
  double* const out_data = out.data<double>();
  ForEachMatrix(a, b, out, [&](int64_t i, int64_t j, int64_t k) {
    MultiplyF64(left, a_data + i, right, b_data + j, /*accumulate=*/false,
                out_data + k);
  });
}

// Uses oneDNN; returns false if it does not support the operands.
bool MatMulOneDnn(const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.rank() <= kMaxMatMulRank &&
      MultiplyOneDnn(ShapeOf(a, b, false), a.raw_data(), b.raw_data(), nullptr,
                     out.raw_data())) {
    return true;
  }
  if (a.rank() == 2) return false;
  const auto matrix = [](const Tensor& t) {
    Tensor view = t;
    while (view.rank() > 2) view = *view.Select(0, 0);
    return view;
  };
  const MatMulShape shape = ShapeOf(matrix(a), matrix(b), false);
  const int64_t bytes = ItemBytes(a.dtype());
  const auto* const a_data = static_cast<const char*>(a.raw_data());
  const auto* const b_data = static_cast<const char*>(b.raw_data());
  auto* const out_data = static_cast<char*>(out.raw_data());
  bool done = true;
  ForEachMatrix(a, b, out, [&](int64_t i, int64_t j, int64_t k) {
    done = done && MultiplyOneDnn(shape, a_data + i * bytes, b_data + j * bytes,
                                  nullptr, out_data + k * bytes);
  });
  return done;
}

// bias [n] may be undefined. Returns false if oneDNN does not support the
// operands.
bool LinearOneDnn(const Tensor& x, const Tensor& w_transposed,
                  const Tensor& bias, Activation activation, Tensor& out) {
  const bool relu = activation == Activation::kRelu;
  const bool f32 = out.dtype() == DType::kF32;
  // oneDNN's own ReLU would turn NaN into 0.
  const bool add_bias_after = bias.defined() && relu && f32;
  const bool add_bias = bias.defined() && !add_bias_after;
  if (!MultiplyOneDnn(ShapeOf(x, w_transposed, add_bias), x.raw_data(),
                      w_transposed.raw_data(),
                      add_bias ? bias.raw_data() : nullptr, out.raw_data())) {
    return false;
  }
  if (add_bias_after) {
    AddBiasRelu(bias.data<float>(), out.data<float>(), out.dim(0), out.dim(1));
  } else if (relu && f32) {
    Unary(UnaryOp::kRelu, out.data<float>(), out.data<float>(),
          out.num_elements());
  } else if (relu) {
    ReluInPlace(out.data<BFloat16>(), out.num_elements());
  }
  return true;
}

absl::StatusOr<Tensor> ToF32(const Tensor& t) {
  if (!t.defined()) return t;
  return t.To(DType::kF32);
}

// The dtypes for which oneDNN has fast kernels.
bool OneDnnTakes(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16;
}

}  // namespace

absl::Status CpuBackend::MatMul(const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.num_elements() == 0) return absl::OkStatus();
  if (a.dim(-1) == 0) {
    SetZero(out);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor left, WithBlasLayout(a));
  ASSIGN_OR_RETURN(const Tensor right, WithBlasLayout(b));
  if (out.dtype() == DType::kF64) {
    MatMulF64(left, right, out);
    return absl::OkStatus();
  }
  if (OneDnnTakes(out.dtype()) && MatMulOneDnn(left, right, out)) {
    return absl::OkStatus();
  }
  if (out.dtype() == DType::kF32) {
    return absl::UnimplementedError(
        "oneDNN does not support f32 matrix products on this machine");
  }
  ASSIGN_OR_RETURN(const Tensor left32, ToF32(left));
  ASSIGN_OR_RETURN(const Tensor right32, ToF32(right));
  ASSIGN_OR_RETURN(Tensor out32, Tensor::TryEmpty(out.shape()));
  RETURN_IF_ERROR(MatMul(left32, right32, out32));
  return out.CopyFrom(out32);
}

absl::Status CpuBackend::Linear(const Tensor& x, const Tensor& w,
                                const Tensor& bias, Activation activation,
                                Tensor& out) {
  if (out.num_elements() == 0) return absl::OkStatus();
  Tensor dense_bias = bias;
  if (bias.defined()) {
    ASSIGN_OR_RETURN(dense_bias, bias.Contiguous());
  }
  ASSIGN_OR_RETURN(const Tensor wt, w.T());
  if (OneDnnTakes(out.dtype()) && x.dim(1) != 0) {
    ASSIGN_OR_RETURN(const Tensor left, WithBlasLayout(x));
    ASSIGN_OR_RETURN(const Tensor right, WithBlasLayout(wt));
    if (LinearOneDnn(left, right, dense_bias, activation, out)) {
      return absl::OkStatus();
    }
  }
  if (out.dtype() == DType::kF16 || out.dtype() == DType::kBF16) {
    ASSIGN_OR_RETURN(const Tensor x32, ToF32(x));
    ASSIGN_OR_RETURN(const Tensor w32, ToF32(w));
    ASSIGN_OR_RETURN(const Tensor bias32, ToF32(dense_bias));
    ASSIGN_OR_RETURN(Tensor out32, Tensor::TryEmpty(out.shape()));
    RETURN_IF_ERROR(Linear(x32, w32, bias32, activation, out32));
    return out.CopyFrom(out32);
  }
  RETURN_IF_ERROR(MatMul(x, wt, out));
  if (bias.defined()) {
    RETURN_IF_ERROR(Binary(BinaryOp::kAdd, out, dense_bias, out));
  }
  if (activation == Activation::kRelu) {
    RETURN_IF_ERROR(Unary(UnaryOp::kRelu, out, out));
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::ReluBiasGrad(const Tensor& y, const Tensor& dy,
                                      Tensor& dz, Tensor& db) {
  // Above this number of rows Reduce() computes the sum, with less rounding
  // error.
  constexpr int64_t kMaxRows = 512;
  const int64_t m = dz.dim(0), n = dz.dim(1);
  const bool fused = db.defined() && m <= kMaxRows && OneDnnTakes(dz.dtype());
  if (!fused) {
    RETURN_IF_ERROR(Binary(BinaryOp::kReluGrad, y, dy, dz));
    if (!db.defined()) return absl::OkStatus();
    ASSIGN_OR_RETURN(Tensor row, db.View({1, n}));
    return Reduce(ReduceOp::kSum, dz, row);
  }
  ASSIGN_OR_RETURN(const Tensor out, y.Contiguous());
  ASSIGN_OR_RETURN(const Tensor dout, dy.Contiguous());
  if (dz.dtype() == DType::kF32) {
    cpu::ReluBiasGrad(out.data<float>(), dout.data<float>(), dz.data<float>(),
                      db.data<float>(), m, n);
    return absl::OkStatus();
  }
  std::vector<float> sums(static_cast<size_t>(n));
  cpu::ReluBiasGrad(out.data<BFloat16>(), dout.data<BFloat16>(),
                    dz.data<BFloat16>(), sums.data(), m, n);
  WriteBlock(db.dtype(), db.raw_data(), 0, 1, n, sums.data());
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
