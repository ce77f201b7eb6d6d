// The functions of vector_elementwise.h, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_elementwise.h"
#include "tensor/backend/cpu/vector_loop-inl.h"
#include "tensor/backend/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define HAWSER_UNARY(Name, expression)        \
  struct Name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  }
#define HAWSER_BINARY(Name, expression)            \
  struct Name {                                    \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V x, V y) const { \
      (void)d;                                     \
      return expression;                           \
    }                                              \
  }

HAWSER_UNARY(NegOp, hn::Neg(x));
HAWSER_UNARY(ExpOp, FullExp(d, x));
HAWSER_UNARY(LogOp, FullLog(d, x));
HAWSER_UNARY(SqrtOp, hn::Sqrt(x));
HAWSER_UNARY(RsqrtOp, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)));
HAWSER_UNARY(AbsOp, hn::Abs(x));
HAWSER_UNARY(ReciprocalOp, hn::Div(hn::Set(d, 1.0f), x));
HAWSER_UNARY(SquareOp, hn::Mul(x, x));
// NaN is not below zero and is kept.
HAWSER_UNARY(ReluOp, hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x));
HAWSER_UNARY(SigmoidOp, Logistic(d, x));
HAWSER_UNARY(TanhOp, FullTanh(d, x));
HAWSER_UNARY(GeluOp, hn::Mul(x, NormalCdf(d, x)));
HAWSER_UNARY(SiluOp, hn::Mul(x, Logistic(d, x)));

HAWSER_BINARY(AddOp, hn::Add(x, y));
HAWSER_BINARY(SubOp, hn::Sub(x, y));
HAWSER_BINARY(MulOp, hn::Mul(x, y));
HAWSER_BINARY(DivOp, hn::Div(x, y));
// x if it is NaN, else y if it is NaN.
HAWSER_BINARY(MaximumOp,
              hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y));
HAWSER_BINARY(MinimumOp,
              hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y));
// Outputs x and their gradients y. The gradient of a NaN is passed on.
HAWSER_BINARY(ReluGradOp, hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), y));
HAWSER_BINARY(SigmoidGradOp,
              hn::Mul(y, hn::Mul(x, hn::Sub(hn::Set(d, 1.0f), x))));
HAWSER_BINARY(TanhGradOp, hn::Mul(y, hn::NegMulAdd(x, x, hn::Set(d, 1.0f))));

// Derivative at input x: Phi(x) + x * phi(x).
struct GeluGradOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const V half_square = hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f));
    const V density =
        hn::Mul(FullExp(d, half_square), hn::Set(d, 0.39894228040143268f));
    return hn::Mul(y, hn::MulAdd(x, density, NormalCdf(d, x)));
  }
};

// Derivative at input x: s + x * s * (1 - s), s = sigmoid(x).
struct SiluGradOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const V s = Logistic(d, x);
    const V slope = hn::Mul(s, hn::Sub(hn::Set(d, 1.0f), s));
    return hn::Mul(y, hn::MulAdd(x, slope, s));
  }
};

// op(x, b) for a constant b.
template <class Op>
struct WithScalar {
  float b;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Op()(d, x, hn::Set(d, b));
  }
};

float Sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }

void Unary(UnaryOp op, const float* in, float* out, size_t n) {
  switch (op) {
    case UnaryOp::kNeg:
      return Map(NegOp(), in, out, n);
    case UnaryOp::kExp:
      return Map(ExpOp(), in, out, n);
    case UnaryOp::kLog:
      return Map(LogOp(), in, out, n);
    case UnaryOp::kSqrt:
      return Map(SqrtOp(), in, out, n);
    case UnaryOp::kRsqrt:
      return Map(RsqrtOp(), in, out, n);
    case UnaryOp::kAbs:
      return Map(AbsOp(), in, out, n);
    case UnaryOp::kReciprocal:
      return Map(ReciprocalOp(), in, out, n);
    case UnaryOp::kSquare:
      return Map(SquareOp(), in, out, n);
    case UnaryOp::kRelu:
      return Map(ReluOp(), in, out, n);
    case UnaryOp::kSigmoid:
      return Map(SigmoidOp(), in, out, n);
    case UnaryOp::kTanh:
      return Map(TanhOp(), in, out, n);
    case UnaryOp::kGelu:
      return Map(GeluOp(), in, out, n);
    case UnaryOp::kSilu:
      return Map(SiluOp(), in, out, n);
    case UnaryOp::kSign:
      for (size_t i = 0; i < n; ++i) out[i] = Sign(in[i]);
      return;
    // Highway's functions are exact only up to 39000.
    case UnaryOp::kSin:
      for (size_t i = 0; i < n; ++i) out[i] = std::sin(in[i]);
      return;
    case UnaryOp::kCos:
      for (size_t i = 0; i < n; ++i) out[i] = std::cos(in[i]);
      return;
  }
  std::abort();
}

// Calls visitor(op) with the functor of `op`; returns false if there is none.
template <class Visitor>
HWY_INLINE bool VisitBinary(BinaryOp op, const Visitor& visitor) {
  switch (op) {
    case BinaryOp::kAdd:
      return visitor(AddOp());
    case BinaryOp::kSub:
      return visitor(SubOp());
    case BinaryOp::kMul:
      return visitor(MulOp());
    case BinaryOp::kDiv:
      return visitor(DivOp());
    case BinaryOp::kMaximum:
      return visitor(MaximumOp());
    case BinaryOp::kMinimum:
      return visitor(MinimumOp());
    case BinaryOp::kReluGrad:
      return visitor(ReluGradOp());
    case BinaryOp::kSigmoidGrad:
      return visitor(SigmoidGradOp());
    case BinaryOp::kTanhGrad:
      return visitor(TanhGradOp());
    case BinaryOp::kGeluGrad:
      return visitor(GeluGradOp());
    case BinaryOp::kSiluGrad:
      return visitor(SiluGradOp());
    case BinaryOp::kPow:
      return false;
  }
  std::abort();
}

struct BinaryVisitor {
  const float* a;
  const float* b;
  float* out;
  size_t n;
  template <class Op>
  HWY_INLINE bool operator()(Op op) const {
    Map2(op, a, b, out, n);
    return true;
  }
};

struct BinaryScalarVisitor {
  const float* a;
  float b;
  float* out;
  size_t n;
  template <class Op>
  HWY_INLINE bool operator()(Op) const {
    Map(WithScalar<Op>{b}, a, out, n);
    return true;
  }
};

void Binary(BinaryOp op, const float* a, const float* b, float* out, size_t n) {
  if (VisitBinary(op, BinaryVisitor{a, b, out, n})) return;
  for (size_t i = 0; i < n; ++i) out[i] = std::pow(a[i], b[i]);
}

void PowScalar(const float* a, float b, float* out, size_t n) {
  if (b == 2.0f) return Map(SquareOp(), a, out, n);
  if (b == 1.0f) return Map(WithScalar<MulOp>{1.0f}, a, out, n);
  if (b == -1.0f) return Map(ReciprocalOp(), a, out, n);
  for (size_t i = 0; i < n; ++i) out[i] = std::pow(a[i], b);
}

void BinaryScalar(BinaryOp op, const float* a, float b, float* out, size_t n) {
  if (VisitBinary(op, BinaryScalarVisitor{a, b, out, n})) return;
  PowScalar(a, b, out, n);
}

struct AddScaledOp {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return hn::MulAdd(hn::Set(d, alpha), b, a);
  }
};

void AddScaled(const float* a, const float* b, float alpha, float* out,
               size_t n) {
  if (alpha == 1.0f) return Map2(AddOp(), a, b, out, n);
  Map2(AddScaledOp{alpha}, a, b, out, n);
}

void AddScaledBf16(const uint16_t* a, const uint16_t* b, float alpha,
                   uint16_t* out, size_t n) {
  const FloatTag df;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint16_t, FloatTag> d16;
  const size_t lanes = hn::Lanes(df);
  const auto load = [&](const uint16_t* p) HWY_ATTR {
    const auto bits = hn::PromoteTo(du, hn::LoadU(d16, p));
    return hn::BitCast(df, hn::ShiftLeft<16>(bits));
  };
  const AddScaledOp op{alpha};
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatVec sum = op(df, load(a + i), load(b + i));
    const auto bits = hn::BitCast(du, sum);
    const auto top = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(top, hn::Set(du, 1));
    const auto nearest =
        hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
    const auto quiet = hn::Or(top, hn::Set(du, 0x40));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(sum));
    const auto result = hn::IfThenElse(is_nan, quiet, nearest);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, result)), d16, out + i);
  }
  for (; i < n; ++i) {
    const float x = static_cast<float>(BFloat16::FromBits(b[i]));
    const float y = static_cast<float>(BFloat16::FromBits(a[i]));
    out[i] = BFloat16(y + alpha * x).bits;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {

HWY_EXPORT(Unary);
HWY_EXPORT(Binary);
HWY_EXPORT(BinaryScalar);
HWY_EXPORT(AddScaled);
HWY_EXPORT(AddScaledBf16);

void Unary(UnaryOp op, const float* in, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Unary)(op, in, out, static_cast<size_t>(n));
}

void Binary(BinaryOp op, const float* a, const float* b, float* out,
            int64_t n) {
  HWY_DYNAMIC_DISPATCH(Binary)(op, a, b, out, static_cast<size_t>(n));
}

void BinaryScalar(BinaryOp op, const float* a, float b, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BinaryScalar)(op, a, b, out, static_cast<size_t>(n));
}

void AddScaled(const float* a, const float* b, float alpha, float* out,
               int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(a, b, alpha, out, static_cast<size_t>(n));
}

void AddScaled(const BFloat16* a, const BFloat16* b, float alpha, BFloat16* out,
               int64_t n) {
  static_assert(sizeof(BFloat16) == sizeof(uint16_t));
  HWY_DYNAMIC_DISPATCH(AddScaledBf16)
  (reinterpret_cast<const uint16_t*>(a), reinterpret_cast<const uint16_t*>(b),
   alpha, reinterpret_cast<uint16_t*>(out), static_cast<size_t>(n));
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_INL_H_
