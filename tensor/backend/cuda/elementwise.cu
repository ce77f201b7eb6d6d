#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/index_plan.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

template <class C>
__device__ C Sigmoid(C x) {
  return C(1) / (C(1) + exp(-x));
}

template <class C>
__device__ C NormalCdf(C x) {
  return C(0.5) * erfc(-x * C(0.70710678118654752440));
}

// The operation is the same for all threads, so the switch costs a uniform
// branch; these kernels are bound by memory.
template <class C>
__device__ C Apply(UnaryOp op, C x) {
  if constexpr (std::is_integral_v<C>) {
    switch (op) {
      case UnaryOp::kNeg:
        return static_cast<C>(-static_cast<uint64_t>(x));
      case UnaryOp::kAbs:
        return x < 0 ? static_cast<C>(-static_cast<uint64_t>(x)) : x;
      case UnaryOp::kSign:
        return C(x > 0) - C(x < 0);
      case UnaryOp::kSquare:
        return static_cast<C>(static_cast<uint64_t>(x) *
                              static_cast<uint64_t>(x));
      default:  // kRelu: the others are only for floating point.
        return x < 0 ? C(0) : x;
    }
  } else {
    switch (op) {
      case UnaryOp::kNeg:
        return -x;
      case UnaryOp::kExp:
        return exp(x);
      case UnaryOp::kLog:
        return log(x);
      case UnaryOp::kSqrt:
        return sqrt(x);
      case UnaryOp::kRsqrt:
        return C(1) / sqrt(x);
      case UnaryOp::kAbs:
        return fabs(x);
      case UnaryOp::kSign:
        return x > 0 ? C(1) : x < 0 ? C(-1) : x;
      case UnaryOp::kSin:
        return sin(x);
      case UnaryOp::kCos:
        return cos(x);
      case UnaryOp::kReciprocal:
        return C(1) / x;
      case UnaryOp::kSquare:
        return x * x;
      case UnaryOp::kRelu:
        return x < 0 ? C(0) : x;
      case UnaryOp::kSigmoid:
        return Sigmoid(x);
      case UnaryOp::kTanh:
        return tanh(x);
      case UnaryOp::kGelu:
        return x * NormalCdf(x);
      case UnaryOp::kSilu:
        return x * Sigmoid(x);
    }
    return x;
  }
}

template <class C>
__device__ C Apply(BinaryOp op, C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
    switch (op) {
      case BinaryOp::kAdd:
        return static_cast<C>(ux + uy);
      case BinaryOp::kSub:
        return static_cast<C>(ux - uy);
      case BinaryOp::kMul:
        return static_cast<C>(ux * uy);
      case BinaryOp::kMaximum:
        return x > y ? x : y;
      default:  // kMinimum: the others are only for floating point.
        return x < y ? x : y;
    }
  } else {
    switch (op) {
      case BinaryOp::kAdd:
        return x + y;
      case BinaryOp::kSub:
        return x - y;
      case BinaryOp::kMul:
        return x * y;
      case BinaryOp::kDiv:
        return x / y;
      case BinaryOp::kMaximum:
        return x > y || x != x ? x : y;
      case BinaryOp::kMinimum:
        return x < y || x != x ? x : y;
      case BinaryOp::kPow:
        return pow(x, y);
      case BinaryOp::kReluGrad:
        return x <= 0 ? C(0) : y;
      case BinaryOp::kSigmoidGrad:
        return y * x * (C(1) - x);
      case BinaryOp::kTanhGrad:
        return y * (C(1) - x * x);
      case BinaryOp::kGeluGrad:
        return y * (NormalCdf(x) +
                    x * C(0.39894228040143267794) * exp(C(-0.5) * x * x));
      case BinaryOp::kSiluGrad: {
        const C s = Sigmoid(x);
        return y * (s + x * s * (C(1) - s));
      }
    }
    return x;
  }
}

template <class C>
__device__ bool Apply(CompareOp op, C x, C y) {
  switch (op) {
    case CompareOp::kEq:
      return x == y;
    case CompareOp::kNe:
      return x != y;
    case CompareOp::kLt:
      return x < y;
    case CompareOp::kLe:
      return x <= y;
    case CompareOp::kGt:
      return x > y;
    case CompareOp::kGe:
      return x >= y;
  }
  return false;
}

template <class Word>
__global__ void FillKernel(IndexPlan<1> plan, Word value, Word* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    out[plan(i).at[0]] = value;
  }
}

template <class T>
__global__ void UnaryKernel(UnaryOp op, IndexPlan<2> plan, const T* in,
                            T* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    Store(out + offsets.at[1], Apply(op, Load(in + offsets.at[0])));
  }
}

// The second argument is `scalar` if `b` is null.
template <class T>
__global__ void BinaryKernel(BinaryOp op, IndexPlan<3> plan, const T* a,
                             const T* b, ComputeType<T> scalar, T* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    const auto y = b != nullptr ? Load(b + offsets.at[1]) : scalar;
    Store(out + offsets.at[2], Apply(op, Load(a + offsets.at[0]), y));
  }
}

template <class T>
__global__ void AddScaledKernel(IndexPlan<3> plan, const T* a, const T* b,
                                ComputeType<T> alpha, T* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    Store(out + offsets.at[2],
          Apply(BinaryOp::kAdd, Load(a + offsets.at[0]),
                Apply(BinaryOp::kMul, alpha, Load(b + offsets.at[1]))));
  }
}

template <class T>
__global__ void CompareKernel(CompareOp op, IndexPlan<3> plan, const T* a,
                              const T* b, bool* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    out[offsets.at[2]] =
        Apply(op, Load(a + offsets.at[0]), Load(b + offsets.at[1]));
  }
}

template <class Word>
__global__ void WhereKernel(IndexPlan<4> plan, const bool* condition,
                            const Word* a, const Word* b, Word* out) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    out[offsets.at[3]] = Load(condition + offsets.at[0]) != 0
                             ? a[offsets.at[1]]
                             : b[offsets.at[2]];
  }
}

// Returns the bits of `value` as an element of `dtype`, in the low bytes.
uint64_t BitsOf(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kF16:
      return Half(static_cast<float>(value)).bits;
    case DType::kBF16:
      return BFloat16(static_cast<float>(value)).bits;
    case DType::kBool:
      return value != 0;
    default:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

// out = op(a, b), or op(a, scalar) if `b` is null.
absl::Status RunBinary(BinaryOp op, const Tensor& a, const Tensor* b,
                       double scalar, Tensor& out) {
  const auto plan = MakePlan<3>(out.shape(), {&a, b != nullptr ? b : &a, &out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitNumber(out.dtype(), "binary operation", [&]<class T>() {
    BinaryKernel<T><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        op, plan, In<T>(a), b != nullptr ? In<T>(*b) : nullptr,
        static_cast<ComputeType<T>>(scalar), Out<T>(out));
    return LaunchStatus("binary operation");
  });
}

}  // namespace

absl::Status CudaBackend::Fill(double value, Tensor& out) {
  const auto plan = MakePlan<1>(out.shape(), {&out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  const uint64_t bits = BitsOf(value, out.dtype());
  return VisitWord(out.dtype(), [&]<class Word>() {
    FillKernel<Word><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        plan, static_cast<Word>(bits), Out<Word>(out));
    return LaunchStatus("fill");
  });
}

absl::Status CudaBackend::Unary(UnaryOp op, const Tensor& in, Tensor& out) {
  const auto plan = MakePlan<2>(out.shape(), {&in, &out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitNumber(in.dtype(), "unary operation", [&]<class T>() {
    UnaryKernel<T><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        op, plan, In<T>(in), Out<T>(out));
    return LaunchStatus("unary operation");
  });
}

absl::Status CudaBackend::Binary(BinaryOp op, const Tensor& a, const Tensor& b,
                                 Tensor& out) {
  return RunBinary(op, a, &b, 0, out);
}

absl::Status CudaBackend::BinaryScalar(BinaryOp op, const Tensor& a, double b,
                                       Tensor& out) {
  return RunBinary(op, a, nullptr, b, out);
}

absl::Status CudaBackend::AddScaled(const Tensor& a, const Tensor& b,
                                    double alpha, Tensor& out) {
  const auto plan = MakePlan<3>(out.shape(), {&a, &b, &out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitNumber(out.dtype(), "scaled addition", [&]<class T>() {
    AddScaledKernel<T><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        plan, In<T>(a), In<T>(b), static_cast<ComputeType<T>>(alpha),
        Out<T>(out));
    return LaunchStatus("scaled addition");
  });
}

absl::Status CudaBackend::Compare(CompareOp op, const Tensor& a,
                                  const Tensor& b, Tensor& out) {
  const auto plan = MakePlan<3>(out.shape(), {&a, &b, &out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  const auto run = [&]<class T>() {
    CompareKernel<T><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        op, plan, In<T>(a), In<T>(b), Out<bool>(out));
    return LaunchStatus("comparison");
  };
  if (a.dtype() == DType::kBool) return run.template operator()<bool>();
  return VisitNumber(a.dtype(), "comparison", run);
}

absl::Status CudaBackend::Where(const Tensor& condition, const Tensor& a,
                                const Tensor& b, Tensor& out) {
  const auto plan = MakePlan<4>(out.shape(), {&condition, &a, &b, &out});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitWord(out.dtype(), [&]<class Word>() {
    WhereKernel<Word><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        plan, In<bool>(condition), In<Word>(a), In<Word>(b), Out<Word>(out));
    return LaunchStatus("where");
  });
}

}  // namespace hawser::tensor::cuda
