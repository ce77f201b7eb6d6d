// Matrix products by cuBLAS.
#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/device_copy.h"
#include "tensor/backend/cuda/gemm.h"
#include "tensor/backend/cuda/index_plan.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

absl::Status CublasStatus(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return absl::OkStatus();
  const std::string message =
      absl::StrCat(what, ": ", cublasGetStatusString(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED
             ? absl::ResourceExhaustedError(message)
             : absl::InternalError(message);
}

struct HandleDeleter {
  void operator()(cublasContext* handle) const { cublasDestroy(handle); }
};
using Handle = std::unique_ptr<cublasContext, HandleDeleter>;

// cuBLAS needs a handle per thread and device. `device` must be the current
// device.
absl::StatusOr<cublasHandle_t> CublasFor(Device device) {
  thread_local std::map<int, Handle> handles;
  Handle& handle = handles[device.index];
  if (handle == nullptr) {
    cublasHandle_t made = nullptr;
    RETURN_IF_ERROR(CublasStatus(cublasCreate(&made), "starting cuBLAS"));
    handle.reset(made);
    RETURN_IF_ERROR(
        CublasStatus(cublasSetStream(made, kStream), "starting cuBLAS"));
  }
  return handle.get();
}

struct GemmTypes {
  cudaDataType_t data;
  cublasComputeType_t compute;
};

absl::StatusOr<GemmTypes> TypesOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return GemmTypes{CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kF64:
      return GemmTypes{CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kF16:
      return GemmTypes{CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::kBF16:
      return GemmTypes{CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    default:
      return absl::UnimplementedError(
          "matrix products of integers are not supported on cuda");
  }
}

// Memory layout of the last two dims of a tensor: rows (kN) or columns (kT)
// that are `leading` elements apart.
struct MatrixView {
  cublasOperation_t op;
  int64_t leading;
};

// `leading` is 0 if neither layout applies.
MatrixView ViewOf(const Tensor& t) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  const int64_t row_stride = t.strides()[t.rank() - 2];
  const int64_t col_stride = t.strides()[t.rank() - 1];
  if (col_stride == 1 && row_stride >= cols) return {CUBLAS_OP_N, row_stride};
  if (row_stride == 1 && col_stride >= rows) return {CUBLAS_OP_T, col_stride};
  return {CUBLAS_OP_N, 0};
}

absl::StatusOr<Tensor> WithBlasLayout(const Tensor& t) {
  if (ViewOf(t).leading > 0) return t;
  return t.Clone();
}

// One factor, with the offset and stride of the batches of a call.
struct Factor {
  MatrixView view;
  const void* data;
  int64_t stride;
};

// out[m, n] = a[m, k] b[k, n] + beta out, `count` times.
struct Product {
  int64_t m, k, n, count;
  Factor a, b;
  void* out;
  int64_t out_stride;
};

// cuBLAS stores matrices by columns: to it, a row-major product is b^T a^T.
absl::Status Multiply(cublasHandle_t handle, const GemmTypes& types,
                      const Product& p, double beta_value) {
  if (std::max({p.m, p.k, p.n, p.count, p.a.view.leading, p.b.view.leading}) >
      INT32_MAX) {
    return absl::UnimplementedError(
        "matrix product: sizes or strides beyond 2^31 on cuda");
  }
  const bool wide = types.compute == CUBLAS_COMPUTE_64F;
  const double one64 = 1, beta64 = beta_value;
  const float one32 = 1, beta32 = static_cast<float>(beta_value);
  const void* const alpha = wide ? static_cast<const void*>(&one64) : &one32;
  const void* const beta = wide ? static_cast<const void*>(&beta64) : &beta32;
  return CublasStatus(
      cublasGemmStridedBatchedEx(
          handle, p.b.view.op, p.a.view.op, static_cast<int>(p.n),
          static_cast<int>(p.m), static_cast<int>(p.k), alpha, p.b.data,
          types.data, static_cast<int>(p.b.view.leading), p.b.stride, p.a.data,
          types.data, static_cast<int>(p.a.view.leading), p.a.stride, beta,
          p.out, types.data, static_cast<int>(p.n), p.out_stride,
          static_cast<int>(p.count), types.compute, CUBLAS_GEMM_DEFAULT),
      "matrix product");
}

// Plans the iteration over the batch dims of the three tensors of a product.
IndexPlan<3> PlanBatches(const Tensor& a, const Tensor& b, const Tensor& out) {
  IndexPlan<3> plan;
  for (int d = 0; d < out.rank() - 2; ++d) {
    plan.Append(out.shape()[d],
                {BroadcastStride(a, out.shape(), d),
                 BroadcastStride(b, out.shape(), d), out.strides()[d]});
  }
  return plan;
}

}  // namespace

absl::Status GemmBatches(const Tensor& a, const Tensor& b, double beta,
                         Tensor& out) {
  if (out.num_elements() == 0) return absl::OkStatus();
  if (a.dim(-1) == 0) {
    return beta == 0 ? CudaBackend().Fill(0, out) : absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Tensor left, WithBlasLayout(a));
  ASSIGN_OR_RETURN(const Tensor right, WithBlasLayout(b));
  ASSIGN_OR_RETURN(const GemmTypes types, TypesOf(out.dtype()));
  const DeviceGuard guard(out.device());
  ASSIGN_OR_RETURN(const cublasHandle_t handle, CublasFor(out.device()));
  // One call covers the innermost batch dim.
  const IndexPlan<3> batches = PlanBatches(left, right, out);
  const int last = batches.rank - 1;
  const auto stride = [&](int operand) {
    return last < 0 ? int64_t{0} : batches.strides[last][operand];
  };
  Product product = {a.dim(-2),
                     a.dim(-1),
                     b.dim(-1),
                     last < 0 ? 1 : batches.sizes[last],
                     {ViewOf(left), nullptr, stride(0)},
                     {ViewOf(right), nullptr, stride(1)},
                     nullptr,
                     stride(2)};
  const int64_t item = ItemBytes(out.dtype());
  for (int64_t i = 0; i < batches.count; i += product.count) {
    const auto offsets = batches(i);
    product.a.data =
        static_cast<const char*>(left.raw_data()) + offsets.at[0] * item;
    product.b.data =
        static_cast<const char*>(right.raw_data()) + offsets.at[1] * item;
    product.out = static_cast<char*>(out.raw_data()) + offsets.at[2] * item;
    RETURN_IF_ERROR(Multiply(handle, types, product, beta));
  }
  return absl::OkStatus();
}

absl::Status CudaBackend::MatMul(const Tensor& a, const Tensor& b,
                                 Tensor& out) {
  return GemmBatches(a, b, /*beta=*/0, out);
}

absl::Status CudaBackend::Linear(const Tensor& x, const Tensor& w,
                                 const Tensor& bias, Activation activation,
                                 Tensor& out) {
  ASSIGN_OR_RETURN(const Tensor transposed, w.T());
  // The product accumulates onto the bias, so that the sum is rounded once.
  if (bias.defined()) RETURN_IF_ERROR(CopyOnDevice(out, bias));
  RETURN_IF_ERROR(GemmBatches(x, transposed, bias.defined() ? 1 : 0, out));
  if (activation == Activation::kNone) return absl::OkStatus();
  return Unary(UnaryOp::kRelu, out, out);
}

absl::Status CudaBackend::ReluBiasGrad(const Tensor& y, const Tensor& dy,
                                       Tensor& dz, Tensor& db) {
  RETURN_IF_ERROR(Binary(BinaryOp::kReluGrad, y, dy, dz));
  if (!db.defined()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tensor row, db.View({1, db.dim(0)}));
  return Reduce(ReduceOp::kSum, dz, row);
}

}  // namespace hawser::tensor::cuda
