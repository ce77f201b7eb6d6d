#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// Dense [rows, cols] matrices. Statistics have the compute type: f64 for f64,
// else f32.
struct Sizes {
  int64_t rows, cols;
};

template <class T>
struct Moments {
  const ComputeType<T>* mean;
  const ComputeType<T>* rstd;

  __device__ ComputeType<T> Normalize(int64_t row, ComputeType<T> x) const {
    return (x - mean[row]) * rstd[row];
  }
};

// One block per row. `weight` and `bias` may be null.
template <class T>
__global__ void LayerNormKernel(Sizes sizes, const T* x, const T* weight,
                                const T* bias, double eps, T* y,
                                ComputeType<T>* mean, ComputeType<T>* rstd) {
  using C = ComputeType<T>;
  __shared__ C scratch[32];
  for (int64_t row = blockIdx.x; row < sizes.rows; row += gridDim.x) {
    const T* const in = x + row * sizes.cols;
    C sum = 0;
    for (int64_t j = threadIdx.x; j < sizes.cols; j += blockDim.x) {
      sum += Load(in + j);
    }
    const C center = BlockSum(sum, scratch) / C(sizes.cols);
    // Two passes, because the one-pass formula loses all digits of a small
    // variance if the mean is large.
    C squares = 0;
    for (int64_t j = threadIdx.x; j < sizes.cols; j += blockDim.x) {
      const C distance = Load(in + j) - center;
      squares += distance * distance;
    }
    const C variance = BlockSum(squares, scratch) / C(sizes.cols);
    const C scale = static_cast<C>(1 / sqrt(double{variance} + eps));
    for (int64_t j = threadIdx.x; j < sizes.cols; j += blockDim.x) {
      C value = (Load(in + j) - center) * scale;
      if (weight != nullptr) value *= Load(weight + j);
      if (bias != nullptr) value += Load(bias + j);
      Store(y + row * sizes.cols + j, value);
    }
    if (threadIdx.x == 0) {
      mean[row] = center;
      rstd[row] = scale;
    }
  }
}

// One block per row. With g = dy * weight and h = (x - mean) * rstd:
//   dx = rstd * (g - mean(g) - h * mean(g * h)).
template <class T>
__global__ void InputGradKernel(Sizes sizes, const T* dy, const T* x,
                                Moments<T> moments, const T* weight, T* dx) {
  using C = ComputeType<T>;
  __shared__ C scratch[32];
  for (int64_t row = blockIdx.x; row < sizes.rows; row += gridDim.x) {
    const int64_t start = row * sizes.cols;
    const auto slope = [&](int64_t j) {
      const C g = Load(dy + start + j);
      return weight != nullptr ? g * Load(weight + j) : g;
    };
    C sum = 0, dot = 0;
    for (int64_t j = threadIdx.x; j < sizes.cols; j += blockDim.x) {
      const C g = slope(j);
      sum += g;
      dot += g * moments.Normalize(row, Load(x + start + j));
    }
    const C mean_g = BlockSum(sum, scratch) / C(sizes.cols);
    const C mean_gh = BlockSum(dot, scratch) / C(sizes.cols);
    for (int64_t j = threadIdx.x; j < sizes.cols; j += blockDim.x) {
      const C h = moments.Normalize(row, Load(x + start + j));
      Store(dx + start + j,
            moments.rstd[row] * (slope(j) - mean_g - h * mean_gh));
    }
  }
}

// One block per kWidth columns; its rows of threads share the matrix rows: dw =
// sum of dy * h, db = sum of dy. `dw` and `db` may be null.
constexpr unsigned kWidth = 32;

template <class T>
__global__ void ParameterGradKernel(Sizes sizes, const T* dy, const T* x,
                                    Moments<T> moments, T* dw, T* db) {
  using C = ComputeType<T>;
  __shared__ C dw_sums[kThreads], db_sums[kThreads];
  const auto plus = [](C a, C b) { return a + b; };
  for (int64_t start = int64_t{blockIdx.x} * kWidth; start < sizes.cols;
       start += int64_t{gridDim.x} * kWidth) {
    const int64_t column = start + threadIdx.x % kWidth;
    C dw_sum = 0, db_sum = 0;
    if (column < sizes.cols) {
      for (int64_t row = threadIdx.x / kWidth; row < sizes.rows;
           row += kThreads / kWidth) {
        const int64_t at = row * sizes.cols + column;
        const C g = Load(dy + at);
        dw_sum += g * moments.Normalize(row, Load(x + at));
        db_sum += g;
      }
    }
    dw_sums[threadIdx.x] = dw_sum;
    db_sums[threadIdx.x] = db_sum;
    CombineRows(dw_sums, kWidth, plus);
    CombineRows(db_sums, kWidth, plus);
    if (threadIdx.x >= kWidth || column >= sizes.cols) continue;
    if (dw != nullptr) Store(dw + column, dw_sums[threadIdx.x]);
    if (db != nullptr) Store(db + column, db_sums[threadIdx.x]);
  }
}

template <class T>
const T* InOrNull(const Tensor& tensor) {
  return tensor.defined() ? In<T>(tensor) : nullptr;
}

absl::StatusOr<Tensor> DenseOrUndefined(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.Contiguous();
}

}  // namespace

absl::Status CudaBackend::LayerNorm(const Tensor& x, const Tensor& weight,
                                    const Tensor& bias, double eps, Tensor& y,
                                    Tensor& mean, Tensor& rstd) {
  const Sizes sizes = {x.dim(0), x.dim(1)};
  if (sizes.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  ASSIGN_OR_RETURN(const Tensor w, DenseOrUndefined(weight));
  ASSIGN_OR_RETURN(const Tensor b, DenseOrUndefined(bias));
  const DeviceGuard guard(y.device());
  return VisitFloat(x.dtype(), "layer norm", [&]<class T>() {
    using C = ComputeType<T>;
    LayerNormKernel<T>
        <<<Blocks(sizes.rows, 1), RowThreads(sizes.cols), 0, kStream>>>(
            sizes, In<T>(dense), InOrNull<T>(w), InOrNull<T>(b), eps, Out<T>(y),
            Out<C>(mean), Out<C>(rstd));
    return LaunchStatus("layer norm");
  });
}

absl::Status CudaBackend::LayerNormGrad(const Tensor& dy, const Tensor& x,
                                        const Tensor& mean, const Tensor& rstd,
                                        const Tensor& weight, Tensor& dx,
                                        Tensor& dw, Tensor& db) {
  const Sizes sizes = {x.dim(0), x.dim(1)};
  if (sizes.cols == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense_dy, dy.Contiguous());
  ASSIGN_OR_RETURN(const Tensor dense_x, x.Contiguous());
  ASSIGN_OR_RETURN(const Tensor means, mean.Contiguous());
  ASSIGN_OR_RETURN(const Tensor rstds, rstd.Contiguous());
  ASSIGN_OR_RETURN(const Tensor w, DenseOrUndefined(weight));
  const DeviceGuard guard(x.device());
  return VisitFloat(
      x.dtype(), "layer norm gradient", [&]<class T>() -> absl::Status {
        using C = ComputeType<T>;
        const Moments<T> moments = {In<C>(means), In<C>(rstds)};
        if (sizes.rows > 0) {
          InputGradKernel<T>
              <<<Blocks(sizes.rows, 1), RowThreads(sizes.cols), 0, kStream>>>(
                  sizes, In<T>(dense_dy), In<T>(dense_x), moments,
                  InOrNull<T>(w), Out<T>(dx));
          RETURN_IF_ERROR(LaunchStatus("layer norm gradient"));
        }
        ParameterGradKernel<T>
            <<<Blocks(sizes.cols, kWidth), kThreads, 0, kStream>>>(
                sizes, In<T>(dense_dy), In<T>(dense_x), moments,
                dw.defined() ? Out<T>(dw) : nullptr,
                db.defined() ? Out<T>(db) : nullptr);
        return LaunchStatus("layer norm gradient");
      });
}

}  // namespace hawser::tensor::cuda
