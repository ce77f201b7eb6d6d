#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/ids.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// Rows along one dim of a contiguous tensor: element j of row r is at
// start(r) + j * step.
struct Rows {
  int64_t count, length, step;

  __device__ int64_t start(int64_t row) const {
    return row / step * length * step + row % step;
  }
};

// A scalar is one row of one element.
Rows RowsOf(const Shape& shape, int dim) {
  Rows rows{1, 1, 1};
  for (int d = 0; d < shape.rank(); ++d) {
    (d == dim ? rows.length : rows.count) *= shape[d];
    if (d > dim) rows.step *= shape[d];
  }
  return rows;
}

// Maximum of a row and sum of the exponentials relative to it.
template <class C>
struct Normalizer {
  C largest;
  C sum;
};

// Computes them for the row at `x`; the whole block must call.
template <class T>
__device__ Normalizer<ComputeType<T>> NormalizerOf(const Rows& rows, const T* x,
                                                   ComputeType<T>* scratch) {
  using C = ComputeType<T>;
  const auto larger = [](C a, C b) { return b > a || b != b ? b : a; };
  C largest = -static_cast<C>(INFINITY);
  for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
    largest = larger(largest, Load(x + j * rows.step));
  }
  largest = BlockCombine(largest, scratch, larger);
  C sum = 0;
  for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
    sum += exp(Load(x + j * rows.step) - largest);
  }
  return {largest, BlockSum(sum, scratch)};
}

// One block per row.
template <class T>
__global__ void SoftmaxKernel(SoftmaxKind kind, Rows rows, const T* x, T* y) {
  using C = ComputeType<T>;
  __shared__ C scratch[32];
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const int64_t start = rows.start(row);
    const Normalizer<C> normalizer = NormalizerOf(rows, x + start, scratch);
    const C log_sum = log(normalizer.sum);
    for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
      const int64_t at = start + j * rows.step;
      const C shifted = Load(x + at) - normalizer.largest;
      Store(y + at, kind == SoftmaxKind::kSoftmax
                        ? exp(shifted) / normalizer.sum
                        : shifted - log_sum);
    }
  }
}

// One block per row.
template <class T>
__global__ void SoftmaxGradKernel(SoftmaxKind kind, Rows rows, const T* y,
                                  const T* dy, T* dx) {
  using C = ComputeType<T>;
  __shared__ C scratch[32];
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const int64_t start = rows.start(row);
    C sum = 0;
    for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
      const int64_t at = start + j * rows.step;
      const C slope = Load(dy + at);
      sum += kind == SoftmaxKind::kSoftmax ? slope * Load(y + at) : slope;
    }
    sum = BlockSum(sum, scratch);
    for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
      const int64_t at = start + j * rows.step;
      const C slope = Load(dy + at), value = Load(y + at);
      Store(dx + at, kind == SoftmaxKind::kSoftmax ? value * (slope - sum)
                                                   : slope - exp(value) * sum);
    }
  }
}

// One block per row of dense [n, c] `logits`: computes probs and the loss of
// each row.
template <class T>
__global__ void CrossEntropyKernel(Rows rows, const T* logits,
                                   const int64_t* labels, T* probs,
                                   double* losses) {
  using C = ComputeType<T>;
  __shared__ C scratch[32];
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const T* const in = logits + row * rows.length;
    const Normalizer<C> normalizer = NormalizerOf(rows, in, scratch);
    for (int64_t j = threadIdx.x; j < rows.length; j += blockDim.x) {
      Store(probs + row * rows.length + j,
            exp(Load(in + j) - normalizer.largest) / normalizer.sum);
    }
    if (threadIdx.x == 0) {
      // Not the log of the stored probability, which may have been rounded to
      // 0.
      losses[row] =
          log(normalizer.sum) - (Load(in + labels[row]) - normalizer.largest);
    }
  }
}

// One block.
template <class T>
__global__ void MeanKernel(int64_t n, const double* losses, T* loss) {
  __shared__ double scratch[32];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += losses[i];
  sum = BlockSum(sum, scratch);
  if (threadIdx.x == 0) Store(loss, sum / static_cast<double>(n));
}

template <class T>
__global__ void CrossEntropyGradKernel(int64_t n, int64_t c, const T* probs,
                                       const int64_t* labels, const T* dloss,
                                       T* dlogits) {
  using C = ComputeType<T>;
  const C scale = Load(dloss) / C(n);
  for (int64_t i = FirstItem(); i < n * c; i += ItemStep()) {
    const C target = labels[i / c] == i % c ? C(1) : C(0);
    Store(dlogits + i, (Load(probs + i) - target) * scale);
  }
}

}  // namespace

absl::Status CudaBackend::Softmax(SoftmaxKind kind, const Tensor& x, int dim,
                                  Tensor& y) {
  if (y.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  const Rows rows = RowsOf(x.shape(), dim);
  const DeviceGuard guard(y.device());
  return VisitFloat(x.dtype(), "softmax", [&]<class T>() {
    SoftmaxKernel<T>
        <<<Blocks(rows.count, 1), RowThreads(rows.length), 0, kStream>>>(
            kind, rows, In<T>(dense), Out<T>(y));
    return LaunchStatus("softmax");
  });
}

absl::Status CudaBackend::SoftmaxGrad(SoftmaxKind kind, const Tensor& y,
                                      const Tensor& dy, int dim, Tensor& dx) {
  if (dx.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense_y, y.Contiguous());
  ASSIGN_OR_RETURN(const Tensor dense_dy, dy.Contiguous());
  const Rows rows = RowsOf(y.shape(), dim);
  const DeviceGuard guard(dx.device());
  return VisitFloat(y.dtype(), "softmax gradient", [&]<class T>() {
    SoftmaxGradKernel<T>
        <<<Blocks(rows.count, 1), RowThreads(rows.length), 0, kStream>>>(
            kind, rows, In<T>(dense_y), In<T>(dense_dy), Out<T>(dx));
    return LaunchStatus("softmax gradient");
  });
}

absl::Status CudaBackend::SoftmaxCrossEntropy(const Tensor& logits,
                                              const Tensor& labels,
                                              Tensor& loss, Tensor& probs) {
  const Rows rows = RowsOf(logits.shape(), 1);
  ASSIGN_OR_RETURN(const Tensor targets,
                   CheckedIds("SoftmaxCrossEntropy", labels, rows.length));
  ASSIGN_OR_RETURN(const Tensor dense, logits.Contiguous());
  ASSIGN_OR_RETURN(
      Tensor losses,
      Tensor::TryEmpty({rows.count}, {DType::kF64, loss.device()}));
  const DeviceGuard guard(loss.device());
  const auto run = [&]<class T>() -> absl::Status {
    if (rows.count > 0) {
      CrossEntropyKernel<T>
          <<<Blocks(rows.count, 1), RowThreads(rows.length), 0, kStream>>>(
              rows, In<T>(dense), In<int64_t>(targets), Out<T>(probs),
              Out<double>(losses));
      RETURN_IF_ERROR(LaunchStatus("cross entropy"));
    }
    MeanKernel<T><<<1, kThreads, 0, kStream>>>(rows.count, In<double>(losses),
                                               Out<T>(loss));
    return LaunchStatus("cross entropy");
  };
  return VisitFloat(logits.dtype(), "cross entropy", run);
}

absl::Status CudaBackend::SoftmaxCrossEntropyGrad(const Tensor& probs,
                                                  const Tensor& labels,
                                                  const Tensor& dloss,
                                                  Tensor& dlogits) {
  const int64_t n = probs.dim(0), c = probs.dim(1);
  ASSIGN_OR_RETURN(const Tensor targets,
                   CheckedIds("SoftmaxCrossEntropyGrad", labels, c));
  if (dlogits.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, probs.Contiguous());
  const DeviceGuard guard(dlogits.device());
  return VisitFloat(probs.dtype(), "cross entropy gradient", [&]<class T>() {
    CrossEntropyGradKernel<T><<<Blocks(n * c), kThreads, 0, kStream>>>(
        n, c, In<T>(dense), In<int64_t>(targets), In<T>(dloss),
        Out<T>(dlogits));
    return LaunchStatus("cross entropy gradient");
  });
}

}  // namespace hawser::tensor::cuda
