// Elementary functions on vectors of floats. Infinities, zero and NaN are
// handled as in <cmath>, which Highway's own functions do not guarantee.
// Included once per instruction set.
#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_MATH_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_MATH_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_MATH_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_MATH_INL_H_
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest float whose exponential is finite.
inline constexpr float kMaxExp = 88.72283f;

template <class D, class V>
HWY_INLINE V FullExp(D d, V x) {
  const V limit = hn::Set(d, kMaxExp);
  const V y = hn::Exp(d, hn::Min(x, limit));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::IsNaN(x), x,
                        hn::IfThenElse(hn::Gt(x, limit), infinity, y));
}

template <class D, class V>
HWY_INLINE V FullLog(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, infinity), x, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Ge(x, zero), y, nan);
}

template <class D, class V>
HWY_INLINE V Logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, FullExp(d, hn::Neg(x))));
}

// For magnitudes above 10 the result rounds to one.
template <class D, class V>
HWY_INLINE V FullTanh(D d, V x) {
  const V limit = hn::Set(d, 10.0f);
  const V y = hn::Tanh(d, hn::Max(hn::Min(x, limit), hn::Neg(limit)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// The probability that a standard normal variable is below x, within 1e-7:
// Abramowitz and Stegun, 7.1.26, for erfc(|x| / sqrt 2) / 2.
template <class D, class V>
HWY_INLINE V NormalCdf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752f));
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.3275911f), one));
  V poly = hn::Set(d, 0.5f * 1.061405429f);
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.5f * -1.453152027f));
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.5f * 1.421413741f));
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.5f * -0.284496736f));
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.5f * 0.254829592f));
  const V tail = hn::Mul(hn::Mul(poly, t), FullExp(d, hn::Neg(hn::Mul(z, z))));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_MATH_INL_H_
