// The functions of vector_reduce.h, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_loop-inl.h"
#include "tensor/backend/cpu/vector_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds x to the accumulator.
struct AddTo {
  template <class V>
  HWY_INLINE V operator()(V sum, V x) const {
    return hn::Add(sum, x);
  }
};
struct AddSquareTo {
  template <class V>
  HWY_INLINE V operator()(V sum, V x) const {
    return hn::MulAdd(x, x, sum);
  }
};
// A NaN is kept, because every comparison with it is false.
struct MaxTo {
  template <class V>
  HWY_INLINE V operator()(V best, V x) const {
    return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best);
  }
};
struct MinTo {
  template <class V>
  HWY_INLINE V operator()(V best, V x) const {
    return hn::IfThenElse(hn::Or(hn::Lt(x, best), hn::IsNaN(x)), x, best);
  }
};

// Folds with `op` into four accumulators, initially `identity`, and combines
// them with `join`.
template <class Op, class Join>
HWY_INLINE FloatVec Fold(const Op& op, const Join& join, float identity,
                         const float* x, size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVec start = hn::Set(d, identity);
  FloatVec a0 = start, a1 = start, a2 = start, a3 = start;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = op(a0, hn::LoadU(d, x + i));
    a1 = op(a1, hn::LoadU(d, x + i + lanes));
    a2 = op(a2, hn::LoadU(d, x + i + 2 * lanes));
    a3 = op(a3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a0 = op(a0, hn::LoadU(d, x + i));
  if (i < n) a1 = op(a1, LoadSome(d, x + i, n - i, identity));
  return join(join(a0, a1), join(a2, a3));
}

constexpr size_t kBlockElements = 4096;

template <class Op>
HWY_INLINE double SumBlocks(const Op& op, const float* x, size_t n) {
  const FloatTag d;
  double sum = 0;
  for (size_t i = 0; i < n; i += kBlockElements) {
    const size_t count = n - i < kBlockElements ? n - i : kBlockElements;
    sum +=
        hn::GetLane(hn::SumOfLanes(d, Fold(op, AddTo(), 0.0f, x + i, count)));
  }
  return sum;
}

double Sum(const float* x, size_t n) { return SumBlocks(AddTo(), x, n); }

double SumOfSquares(const float* x, size_t n) {
  return SumBlocks(AddSquareTo(), x, n);
}

// Folds the lanes of `v` by comparison; a NaN wins.
template <class Better>
HWY_INLINE float BestLane(FloatVec v, const Better& better) {
  const FloatTag d;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  float best = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) {
    if (better(lanes[i], best) || lanes[i] != lanes[i]) best = lanes[i];
  }
  return best;
}

float Max(const float* x, size_t n) {
  const float least = -std::numeric_limits<float>::infinity();
  return BestLane(Fold(MaxTo(), MaxTo(), least, x, n),
                  [](float a, float b) { return a > b; });
}

float Min(const float* x, size_t n) {
  const float greatest = std::numeric_limits<float>::infinity();
  return BestLane(Fold(MinTo(), MinTo(), greatest, x, n),
                  [](float a, float b) { return a < b; });
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace hawser::tensor::cpu {

HWY_EXPORT(Sum);
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(Max);
HWY_EXPORT(Min);

double Sum(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Sum)(x, static_cast<size_t>(n));
}

double SumOfSquares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, static_cast<size_t>(n));
}

float Max(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Max)(x, static_cast<size_t>(n));
}

float Min(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Min)(x, static_cast<size_t>(n));
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_INL_H_
