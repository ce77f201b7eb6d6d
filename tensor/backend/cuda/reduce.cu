#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/index_plan.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// The accumulator type. Reductions are bound by memory bandwidth, so f64 is
// free, and the result equals that of the CPU up to the last bit.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

// The larger, or smaller, of two numbers; NaN if either is.
template <class S>
__device__ S Choose(bool max, S best, S x) {
  return (max ? x > best : x < best) || x != x ? x : best;
}

template <class S>
struct Reduction {
  ReduceOp op;

  __device__ S Identity() const {
    if (op != ReduceOp::kMax && op != ReduceOp::kMin) return 0;
    const bool max = op == ReduceOp::kMax;
    if constexpr (std::is_integral_v<S>) {
      return max ? INT64_MIN : INT64_MAX;
    } else {
      return max ? -static_cast<S>(INFINITY) : static_cast<S>(INFINITY);
    }
  }

  __device__ S operator()(S a, S b) const {
    if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
      return Choose(op == ReduceOp::kMax, a, b);
    }
    if constexpr (std::is_integral_v<S>) {  // Wraps.
      return static_cast<S>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }

  // Finishes a reduction of `count` elements.
  __device__ S Finish(S result, int64_t count) const {
    return op == ReduceOp::kMean ? result / static_cast<S>(count) : result;
  }
};

// The kept elements, and the elements reduced into each of them. A block
// computes `width` results; its threads share the elements of each result.
struct ReducePlan {
  IndexPlan<1> kept;
  IndexPlan<1> reduced;
  unsigned width = 1;

  unsigned lanes() const { return kThreads / width; }
};

// Writes results to `out`, or the partial results of gridDim.y parts of the
// elements to `parts` [gridDim.y, results].
template <class T>
__global__ void ReduceKernel(Reduction<Accumulator<T>> reduction,
                             ReducePlan plan, const T* in, T* out,
                             Accumulator<T>* parts) {
  using S = Accumulator<T>;
  __shared__ S scratch[kThreads];
  const unsigned column = threadIdx.x % plan.width;
  const int64_t lanes = kThreads / plan.width;
  const int64_t first = blockIdx.y * lanes + threadIdx.x / plan.width;
  const int64_t step = gridDim.y * lanes;
  for (int64_t start = int64_t{blockIdx.x} * plan.width;
       start < plan.kept.count; start += int64_t{gridDim.x} * plan.width) {
    const int64_t result = start + column;
    S value = reduction.Identity();
    if (result < plan.kept.count) {
      const T* const base = in + plan.kept(result).at[0];
      for (int64_t i = first; i < plan.reduced.count; i += step) {
        value = reduction(value,
                          static_cast<S>(Load(base + plan.reduced(i).at[0])));
      }
    }
    scratch[threadIdx.x] = value;
    CombineRows(scratch, plan.width, reduction);
    if (threadIdx.x >= plan.width || result >= plan.kept.count) continue;
    value = scratch[threadIdx.x];
    if (parts != nullptr) {
      parts[blockIdx.y * plan.kept.count + result] = value;
    } else {
      Store(out + result, reduction.Finish(value, plan.reduced.count));
    }
  }
}

// Reduces `parts` [num_parts, results] to the results.
template <class T>
__global__ void FinishReduceKernel(Reduction<Accumulator<T>> reduction,
                                   int64_t results, int64_t num_parts,
                                   int64_t reduced_count,
                                   const Accumulator<T>* parts, T* out) {
  for (int64_t i = FirstItem(); i < results; i += ItemStep()) {
    Accumulator<T> value = parts[i];
    for (int64_t part = 1; part < num_parts; ++part) {
      value = reduction(value, parts[part * results + i]);
    }
    Store(out + i, reduction.Finish(value, reduced_count));
  }
}

// The term of an element in the sum or maximum of a p-norm.
__device__ double Power(double x, double p) {
  if (isinf(p) || p == 1) return x;
  return p == 2 ? x * x : pow(x, p);
}

struct NormStep {
  bool largest;
  __device__ double operator()(double a, double b) const {
    return largest ? Choose(true, a, b) : a + b;
  }
};

// Writes the partial result of each block to parts [gridDim.x].
template <class T>
__global__ void NormKernel(IndexPlan<1> plan, double p, const T* in,
                           double* parts) {
  __shared__ double scratch[32];
  const NormStep combine{isinf(p)};
  double value = 0;
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const double x = fabs(static_cast<double>(Load(in + plan(i).at[0])));
    value = combine(value, Power(x, p));
  }
  value = BlockCombine(value, scratch, combine);
  if (threadIdx.x == 0) parts[blockIdx.x] = value;
}

// One block.
template <class T>
__global__ void FinishNormKernel(int num_parts, double p, const double* parts,
                                 T* out) {
  __shared__ double scratch[32];
  const NormStep combine{isinf(p)};
  double value = 0;
  for (int i = threadIdx.x; i < num_parts; i += kThreads) {
    value = combine(value, parts[i]);
  }
  value = BlockCombine(value, scratch, combine);
  if (threadIdx.x != 0) return;
  if (p == 2) {
    value = sqrt(value);
  } else if (p != 1 && !isinf(p)) {
    value = pow(value, 1 / p);
  }
  Store(out, value);
}

// One thread per result. `stride` is the stride of the dim of `n` elements.
template <class T>
__global__ void ArgMaxKernel(IndexPlan<1> kept, int64_t n, int64_t stride,
                             const T* in, int64_t* out) {
  using C = ComputeType<T>;
  for (int64_t i = FirstItem(); i < kept.count; i += ItemStep()) {
    const T* const line = in + kept(i).at[0];
    int64_t best = 0;
    C best_value = Load(line);
    for (int64_t j = 1; j < n; ++j) {
      const C x = Load(line + j * stride);
      if (x > best_value || (x != x && best_value == best_value)) {
        best = j;
        best_value = x;
      }
    }
    out[i] = best;
  }
}

int64_t InnerStride(const IndexPlan<1>& plan) {
  return plan.rank == 0 ? 0 : plan.strides[plan.rank - 1][0];
}

ReducePlan PlanReduction(const Tensor& in, const Tensor& out) {
  ReducePlan plan;
  for (int d = 0; d < in.rank(); ++d) {
    const bool reduced = out.shape()[d] == 1;
    (reduced ? plan.reduced : plan.kept)
        .Append(in.shape()[d], {in.strides()[d]});
  }
  // Adjacent threads should read adjacent elements: along the results if these
  // are denser or if there is little to reduce.
  const bool dense_results = plan.kept.count > 1 && InnerStride(plan.kept) == 1;
  unsigned lanes = dense_results ? 8 : kThreads;
  while (lanes > 1 && lanes / 2 >= plan.reduced.count) lanes /= 2;
  plan.width = kThreads / lanes;
  return plan;
}

// Number of parts into which the elements of each result are split, so that few
// results of many elements still occupy the device.
int64_t NumParts(const ReducePlan& plan) {
  constexpr int64_t kEnoughBlocks = 512;
  constexpr int64_t kElementsPerThread = 16;
  const int64_t blocks = Blocks(plan.kept.count, plan.width);
  const int64_t useful =
      plan.reduced.count / (plan.lanes() * kElementsPerThread);
  return std::clamp<int64_t>(kEnoughBlocks / blocks, 1,
                             std::max<int64_t>(useful, 1));
}

}  // namespace

absl::Status CudaBackend::Reduce(ReduceOp op, const Tensor& in, Tensor& out) {
  const ReducePlan plan = PlanReduction(in, out);
  const int64_t results = plan.kept.count;
  if (results == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  const int64_t num_parts = NumParts(plan);
  Tensor parts;  // f64 or i64, both of eight bytes.
  if (num_parts > 1) {
    ASSIGN_OR_RETURN(parts, Tensor::TryEmpty({num_parts, results},
                                             {DType::kF64, out.device()}));
  }
  const dim3 grid(Blocks(results, plan.width),
                  static_cast<unsigned>(num_parts));
  return VisitNumber(in.dtype(), "reduction", [&]<class T>() -> absl::Status {
    using S = Accumulator<T>;
    const Reduction<S> reduction{op};
    S* const part_data = parts.defined() ? Out<S>(parts) : nullptr;
    ReduceKernel<T><<<grid, kThreads, 0, kStream>>>(reduction, plan, In<T>(in),
                                                    Out<T>(out), part_data);
    RETURN_IF_ERROR(LaunchStatus("reduction"));
    if (part_data == nullptr) return absl::OkStatus();
    FinishReduceKernel<T><<<Blocks(results), kThreads, 0, kStream>>>(
        reduction, results, num_parts, plan.reduced.count, part_data,
        Out<T>(out));
    return LaunchStatus("reduction");
  });
}

absl::Status CudaBackend::Norm(const Tensor& in, double p, Tensor& out) {
  const auto plan = MakePlan<1>(in.shape(), {&in});
  const DeviceGuard guard(out.device());
  const unsigned blocks = std::min(Blocks(plan.count), 1024u);
  ASSIGN_OR_RETURN(Tensor parts,
                   Tensor::TryEmpty({blocks}, {DType::kF64, out.device()}));
  return VisitFloat(in.dtype(), "norm", [&]<class T>() -> absl::Status {
    NormKernel<T><<<blocks, kThreads, 0, kStream>>>(plan, p, In<T>(in),
                                                    Out<double>(parts));
    RETURN_IF_ERROR(LaunchStatus("norm"));
    FinishNormKernel<T><<<1, kThreads, 0, kStream>>>(
        static_cast<int>(blocks), p, In<double>(parts), Out<T>(out));
    return LaunchStatus("norm");
  });
}

absl::Status CudaBackend::ArgMax(const Tensor& in, int dim, Tensor& out) {
  IndexPlan<1> kept;
  for (int d = 0; d < in.rank(); ++d) {
    if (d != dim) kept.Append(in.shape()[d], {in.strides()[d]});
  }
  if (kept.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitNumber(in.dtype(), "argmax", [&]<class T>() {
    ArgMaxKernel<T><<<Blocks(kept.count), kThreads, 0, kStream>>>(
        kept, in.shape()[dim], in.strides()[dim], In<T>(in), Out<int64_t>(out));
    return LaunchStatus("argmax");
  });
}

}  // namespace hawser::tensor::cuda
