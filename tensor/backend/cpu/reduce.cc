#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/backend/cpu/vector_bias.h"
#include "tensor/backend/cpu/vector_reduce.h"

namespace hawser::tensor::cpu {
namespace {

// One kind of reduction: Acc is the accumulator, Take() adds one element to it,
// TakeRow() a dense run.
template <class C>
struct Summing {
  using Acc = std::conditional_t<std::is_integral_v<C>, uint64_t, double>;
  static Acc Identity() { return 0; }
  static void Take(Acc& sum, C x) { sum += static_cast<Acc>(x); }
  static void TakeRow(Acc& sum, const C* x, int64_t n) {
    if constexpr (std::is_same_v<C, float>) {
      sum += Sum(x, n);
    } else {
      for (int64_t i = 0; i < n; ++i) Take(sum, x[i]);
    }
  }
};

template <class C>
bool IsNaN(C x) {
  return x != x;
}

template <class C, bool kMax>
struct Choosing {
  using Acc = C;
  static Acc Identity() {
    using Limits = std::numeric_limits<C>;
    if constexpr (Limits::has_infinity) {
      return kMax ? -Limits::infinity() : Limits::infinity();
    } else {
      return kMax ? Limits::min() : Limits::max();
    }
  }
  static void Take(Acc& best, C x) {
    if ((kMax ? x > best : x < best) || IsNaN(x)) best = x;
  }
  static void TakeRow(Acc& best, const C* x, int64_t n) {
    if constexpr (std::is_same_v<C, float>) {
      Take(best, kMax ? Max(x, n) : Min(x, n));
    } else {
      for (int64_t i = 0; i < n; ++i) Take(best, x[i]);
    }
  }
};

// Calls function(offsets, block, i, n) for runs of the rows of `plan`, whose
// operand 0 is `in`: `block` holds n elements from the i-th of a row on.
template <class C, size_t N, class F>
void ForEachBlock(const LoopPlan<N>& plan, const Tensor& in, F&& function) {
  const int64_t stride = plan.row_stride(0);
  const bool direct = IsComputeType<C>(in.dtype()) && stride == 1;
  const int64_t step = direct ? std::max<int64_t>(plan.row_size(), 1) : kBlock;
  std::array<C, kBlock> buffer;
  plan.ForEachRow([&](const auto& offsets) {
    for (int64_t i = 0; i < plan.row_size(); i += step) {
      const int64_t n = std::min(step, plan.row_size() - i);
      const C* const block =
          ReadBlock(in.dtype(), in.raw_data(), offsets[0] + i * stride, stride,
                    n, buffer.data());
      function(offsets, block, i, n);
    }
  });
}

// Reduces `in` to one accumulator for each element of `out`, in its order.
template <class C, class Op>
std::vector<typename Op::Acc> Accumulate(const Tensor& in, const Tensor& out) {
  std::vector<typename Op::Acc> accs(static_cast<size_t>(out.num_elements()),
                                     Op::Identity());
  const LoopPlan<2> plan(in.shape(), {&in, &out});
  const int64_t out_stride = plan.row_stride(1);
  ForEachBlock<C>(
      plan, in, [&](const auto& offsets, const C* block, int64_t i, int64_t n) {
        typename Op::Acc* const acc = accs.data() + offsets[1];
        if (out_stride == 0) return Op::TakeRow(*acc, block, n);
        for (int64_t j = 0; j < n; ++j) {
          Op::Take(acc[(i + j) * out_stride], block[j]);
        }
      });
  return accs;
}

template <class C, class Op>
void ReduceBy(const Tensor& in, double divisor, Tensor& out) {
  const auto accs = Accumulate<C, Op>(in, out);
  std::array<C, kBlock> results;
  for (int64_t i = 0; i < out.num_elements(); i += kBlock) {
    const int64_t n = std::min(kBlock, out.num_elements() - i);
    for (int64_t j = 0; j < n; ++j) {
      const auto acc = accs[static_cast<size_t>(i + j)];
      results[j] = static_cast<C>(std::is_floating_point_v<C>
                                      ? static_cast<C>(acc / divisor)
                                      : static_cast<C>(acc));
    }
    WriteBlock(out.dtype(), out.raw_data(), i, 1, n, results.data());
  }
}

// Whether `in` is dense f32 or bf16 and `out` reduces its leading dims.
bool ReducesLeadingDims(const Tensor& in, const Tensor& out) {
  const bool narrow = in.dtype() == DType::kF32 || in.dtype() == DType::kBF16;
  if (!narrow || !in.is_contiguous()) return false;
  int d = 0;
  while (d < in.rank() && out.shape()[d] == 1) ++d;
  for (; d < in.rank(); ++d) {
    if (out.shape()[d] != in.shape()[d]) return false;
  }
  return out.num_elements() > 1;
}

// T is float or BFloat16. Sums of this many rows are computed in f32 and added
// up in f64.
template <class T>
void SumLeadingDims(const Tensor& in, Tensor& out) {
  constexpr int64_t kBlockRows = 512;
  const int64_t n = out.num_elements(), m = in.num_elements() / n;
  const T* const x = in.data<T>();
  if (std::is_same_v<T, float> && m <= kBlockRows) {
    return ColumnSums(x, static_cast<float*>(out.raw_data()), m, n);
  }
  std::vector<float> sums(static_cast<size_t>(n));
  std::vector<double> totals(sums.size());
  for (int64_t i = 0; i < m; i += kBlockRows) {
    ColumnSums(x + i * n, sums.data(), std::min(kBlockRows, m - i), n);
    for (size_t j = 0; j < sums.size(); ++j) totals[j] += sums[j];
  }
  for (size_t j = 0; j < sums.size(); ++j) {
    sums[j] = static_cast<float>(totals[j]);
  }
  WriteBlock(out.dtype(), out.raw_data(), 0, 1, n, sums.data());
}

}  // namespace

absl::Status CpuBackend::Reduce(ReduceOp op, const Tensor& in, Tensor& out) {
  if (out.num_elements() == 0) return absl::OkStatus();
  if (op == ReduceOp::kSum && ReducesLeadingDims(in, out)) {
    if (in.dtype() == DType::kF32) {
      SumLeadingDims<float>(in, out);
    } else {
      SumLeadingDims<BFloat16>(in, out);
    }
    return absl::OkStatus();
  }
  const double count = static_cast<double>(in.num_elements()) /
                       static_cast<double>(out.num_elements());
  VisitComputeType(in.dtype(), [&]<class C>() {
    switch (op) {
      case ReduceOp::kSum:
        return ReduceBy<C, Summing<C>>(in, 1, out);
      case ReduceOp::kMean:
        return ReduceBy<C, Summing<C>>(in, count, out);
      case ReduceOp::kMax:
        return ReduceBy<C, Choosing<C, true>>(in, 1, out);
      case ReduceOp::kMin:
        return ReduceBy<C, Choosing<C, false>>(in, 1, out);
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Norm(const Tensor& in, double p, Tensor& out) {
  const LoopPlan<1> plan(in.shape(), {&in});
  double result = 0;
  VisitFloatComputeType(in.dtype(), [&]<class C>() {
    ForEachBlock<C>(
        plan, in, [&](const auto&, const C* block, int64_t, int64_t n) {
          if constexpr (std::is_same_v<C, float>) {
            if (p == 2) {
              result += SumOfSquares(block, n);
              return;
            }
          }
          for (int64_t i = 0; i < n; ++i) {
            const double x = std::fabs(static_cast<double>(block[i]));
            if (std::isinf(p)) {
              if (x > result || IsNaN(x)) result = x;
            } else {
              result += p == 1 ? x : p == 2 ? x * x : std::pow(x, p);
            }
          }
        });
    if (p == 2) {
      result = std::sqrt(result);
    } else if (p != 1 && !std::isinf(p)) {
      result = std::pow(result, 1 / p);
    }
    const C value = static_cast<C>(result);
    WriteBlock(out.dtype(), out.raw_data(), 0, 1, 1, &value);
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::ArgMax(const Tensor& in, int dim, Tensor& out) {
  const LoopPlan<2> plan(out.shape(), {&in, &out});
  const int64_t n = in.dim(dim), stride = in.strides()[dim];
  int64_t* const indices = out.data<int64_t>();
  VisitComputeType(in.dtype(), [&]<class C>() {
    std::array<C, kBlock> buffer;
    const auto find = [&](int64_t start) {
      int64_t best = 0;
      C best_value{};
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t count = std::min(kBlock, n - i);
        const C* const x =
            ReadBlock(in.dtype(), in.raw_data(), start + i * stride, stride,
                      count, buffer.data());
        for (int64_t j = 0; j < count; ++j) {
          const bool better =
              x[j] > best_value || (IsNaN(x[j]) && !IsNaN(best_value));
          if ((i == 0 && j == 0) || better) {
            best = i + j;
            best_value = x[j];
          }
        }
      }
      return best;
    };
    plan.ForEachRow([&](const auto& offsets) {
      for (int64_t i = 0; i < plan.row_size(); ++i) {
        indices[offsets[1] + i * plan.row_stride(1)] =
            find(offsets[0] + i * plan.row_stride(0));
      }
    });
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
