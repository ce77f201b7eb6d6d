// The functions of row_kernels.h for floats, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_ROWS_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_ROWS_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "tensor/backend/cpu/row_kernels.h"
#include "tensor/backend/cpu/vector_loop-inl.h"
#include "tensor/backend/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float SumLanes(FloatVec v) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), v));
}

// The largest element, ignoring NaN, which propagates through the exponentials.
HWY_INLINE float MaxOf(const float* x, size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const float least = -std::numeric_limits<float>::infinity();
  FloatVec best = hn::Set(d, least);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) best = hn::Max(hn::LoadU(d, x + i), best);
  if (i < n) best = hn::Max(LoadSome(d, x + i, n - i, least), best);
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// The sum of exp(x - shift); writes the terms to y unless it is null.
template <bool kWrite>
HWY_INLINE float SumExp(const float* x, float shift, size_t n, float* y) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVec offset = hn::Set(d, shift);
  FloatVec sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatVec e = FullExp(d, hn::Sub(hn::LoadU(d, x + i), offset));
    if (kWrite) hn::StoreU(e, d, y + i);
    sum = hn::Add(sum, e);
  }
  if (i < n) {
    const float least = -std::numeric_limits<float>::infinity();
    const FloatVec e =
        FullExp(d, hn::Sub(LoadSome(d, x + i, n - i, least), offset));
    if (kWrite) StoreSome(e, d, y + i, n - i);
    sum = hn::Add(sum, e);
  }
  return SumLanes(sum);
}

struct ScaleOp {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, hn::Set(d, factor));
  }
};

// x - max - log_sum, in two subtractions: in max + log_sum a large max would
// absorb log_sum.
struct LogSoftmaxOp {
  float max;
  float log_sum;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Sub(hn::Sub(x, hn::Set(d, max)), hn::Set(d, log_sum));
  }
};

void SoftmaxRow(SoftmaxKind kind, const float* x, size_t n, float* y) {
  const float max = MaxOf(x, n);
  if (kind == SoftmaxKind::kSoftmax) {
    const float sum = SumExp<true>(x, max, n, y);
    Map(ScaleOp{1.0f / sum}, y, y, n);
  } else {
    const float sum = SumExp<false>(x, max, n, nullptr);
    Map(LogSoftmaxOp{max, std::log(sum)}, x, y, n);
  }
}

// The sum of combine(a, b) over a row, with padding 0 for both.
template <class Combine>
HWY_INLINE float SumOf2(const Combine& combine, const float* a, const float* b,
                        size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  FloatVec sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    sum = combine(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  }
  if (i < n) {
    sum = combine(LoadSome(d, a + i, n - i), LoadSome(d, b + i, n - i), sum);
  }
  return SumLanes(sum);
}

struct DotStep {
  template <class V>
  HWY_INLINE V operator()(V a, V b, V sum) const {
    return hn::MulAdd(a, b, sum);
  }
};

// y * (dy - dot)
struct SoftmaxGradOp {
  float dot;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V y, V dy) const {
    return hn::Mul(y, hn::Sub(dy, hn::Set(d, dot)));
  }
};

// dy - exp(y) * sum
struct LogSoftmaxGradOp {
  float sum;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V y, V dy) const {
    return hn::NegMulAdd(FullExp(d, y), hn::Set(d, sum), dy);
  }
};

struct SumStep {
  template <class V>
  HWY_INLINE V operator()(V a, V, V sum) const {
    return hn::Add(a, sum);
  }
};

void SoftmaxGradRow(SoftmaxKind kind, const float* y, const float* dy, size_t n,
                    float* dx) {
  if (kind == SoftmaxKind::kSoftmax) {
    Map2(SoftmaxGradOp{SumOf2(DotStep(), y, dy, n)}, y, dy, dx, n);
  } else {
    Map2(LogSoftmaxGradOp{SumOf2(SumStep(), dy, dy, n)}, y, dy, dx, n);
  }
}

double CrossEntropyRow(const float* logits, size_t n, size_t label,
                       float* probs) {
  const float max = MaxOf(logits, n);
  const float logit = logits[label];
  const float sum = SumExp<true>(logits, max, n, probs);
  Map(ScaleOp{1.0f / sum}, probs, probs, n);
  return std::log(sum) - (logit - max);
}

// The sum of squares of x - mean, with the mean as padding.
HWY_INLINE float SumSquaresAround(const float* x, float mean, size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVec center = hn::Set(d, mean);
  FloatVec sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatVec c = hn::Sub(hn::LoadU(d, x + i), center);
    sum = hn::MulAdd(c, c, sum);
  }
  if (i < n) {
    const FloatVec c = hn::Sub(LoadSome(d, x + i, n - i, mean), center);
    sum = hn::MulAdd(c, c, sum);
  }
  return SumLanes(sum);
}

struct NormalizeOp {
  Moments<float> moments;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(hn::Sub(x, hn::Set(d, moments.mean)),
                   hn::Set(d, moments.rstd));
  }
};

struct AddBiasOp {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct NormalizeScaleOp {
  NormalizeOp normalize;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V weight) const {
    return hn::Mul(normalize(d, x), weight);
  }
};

void LayerNormRow(const float* x, size_t n, const float* weight,
                  const float* bias, double eps, float* y,
                  Moments<float>* moments) {
  const float count = static_cast<float>(n);
  moments->mean = SumOf2(SumStep(), x, x, n) / count;
  const double variance = SumSquaresAround(x, moments->mean, n) / count;
  moments->rstd = static_cast<float>(1 / std::sqrt(variance + eps));
  const NormalizeOp normalize{*moments};
  if (weight != nullptr) {
    Map2(NormalizeScaleOp{normalize}, x, weight, y, n);
  } else {
    Map(normalize, x, y, n);
  }
  if (bias != nullptr) Map2(AddBiasOp(), y, bias, y, n);
}

// With g = dy * weight and h = (x - mean) * rstd:
//   dx = rstd * (g - mean(g) - h * mean(g * h)), dw += dy * h, db += dy.
void LayerNormGradRow(const float* dy, const float* x, size_t n,
                      Moments<float> moments, const float* weight, float* dx,
                      float* dw, float* db) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const NormalizeOp normalize{moments};
  FloatVec sum_g = hn::Zero(d), sum_gh = hn::Zero(d);
  const auto take = [&](FloatVec out, FloatVec h, FloatVec w) HWY_ATTR {
    const FloatVec g = hn::Mul(out, w);
    sum_g = hn::Add(sum_g, g);
    sum_gh = hn::MulAdd(g, h, sum_gh);
  };
  const FloatVec one = hn::Set(d, 1.0f);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatVec out = hn::LoadU(d, dy + i);
    const FloatVec h = normalize(d, hn::LoadU(d, x + i));
    take(out, h, weight != nullptr ? hn::LoadU(d, weight + i) : one);
    hn::StoreU(hn::MulAdd(out, h, hn::LoadU(d, dw + i)), d, dw + i);
    hn::StoreU(hn::Add(out, hn::LoadU(d, db + i)), d, db + i);
  }
  if (const size_t left = n - i; left > 0) {
    const FloatVec out = LoadSome(d, dy + i, left);
    const FloatVec h = normalize(d, LoadSome(d, x + i, left));
    take(out, h, weight != nullptr ? LoadSome(d, weight + i, left) : one);
    StoreSome(hn::MulAdd(out, h, LoadSome(d, dw + i, left)), d, dw + i, left);
    StoreSome(hn::Add(out, LoadSome(d, db + i, left)), d, db + i, left);
  }
  const float count = static_cast<float>(n);
  const FloatVec mean_g = hn::Set(d, SumLanes(sum_g) / count);
  const FloatVec mean_gh = hn::Set(d, SumLanes(sum_gh) / count);
  const FloatVec rstd = hn::Set(d, moments.rstd);
  const auto finish = [&](FloatVec g, FloatVec h) HWY_ATTR {
    return hn::Mul(rstd, hn::NegMulAdd(h, mean_gh, hn::Sub(g, mean_g)));
  };
  for (i = 0; i + lanes <= n; i += lanes) {
    FloatVec g = hn::LoadU(d, dy + i);
    if (weight != nullptr) g = hn::Mul(g, hn::LoadU(d, weight + i));
    const FloatVec h = normalize(d, hn::LoadU(d, x + i));
    hn::StoreU(finish(g, h), d, dx + i);
  }
  if (const size_t left = n - i; left > 0) {
    FloatVec g = LoadSome(d, dy + i, left);
    if (weight != nullptr) g = hn::Mul(g, LoadSome(d, weight + i, left));
    const FloatVec h = normalize(d, LoadSome(d, x + i, left));
    StoreSome(finish(g, h), d, dx + i, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {

HWY_EXPORT(SoftmaxRow);
HWY_EXPORT(SoftmaxGradRow);
HWY_EXPORT(CrossEntropyRow);
HWY_EXPORT(LayerNormRow);
HWY_EXPORT(LayerNormGradRow);

void SoftmaxRow(SoftmaxKind kind, const float* x, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRow)(kind, x, static_cast<size_t>(n), y);
}

void SoftmaxGradRow(SoftmaxKind kind, const float* y, const float* dy,
                    int64_t n, float* dx) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradRow)
  (kind, y, dy, static_cast<size_t>(n), dx);
}

double CrossEntropyRow(const float* logits, int64_t n, int64_t label,
                       float* probs) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyRow)(
      logits, static_cast<size_t>(n), static_cast<size_t>(label), probs);
}

Moments<float> LayerNormRow(const float* x, int64_t n, const float* weight,
                            const float* bias, double eps, float* y) {
  Moments<float> moments;
  HWY_DYNAMIC_DISPATCH(LayerNormRow)
  (x, static_cast<size_t>(n), weight, bias, eps, y, &moments);
  return moments;
}

void LayerNormGradRow(const float* dy, const float* x, int64_t n,
                      Moments<float> moments, const float* weight, float* dx,
                      float* dw, float* db) {
  HWY_DYNAMIC_DISPATCH(LayerNormGradRow)
  (dy, x, static_cast<size_t>(n), moments, weight, dx, dw, db);
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_ROWS_INL_H_
