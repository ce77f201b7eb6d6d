// The functions of vector_bias.h, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_bias.h"
#include "tensor/backend/cpu/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bf16Tag = hn::Rebind<uint16_t, FloatTag>;

// Conversion of matrix elements to vectors of floats and masks.
struct FloatElements {
  using T = float;
  using V = FloatVec;
  static HWY_INLINE V Load(const T* p) { return hn::LoadU(FloatTag(), p); }
  static HWY_INLINE void Store(V v, T* p) { hn::StoreU(v, FloatTag(), p); }
  static HWY_INLINE V ZeroUnlessActive(V y, V dy) {
    return hn::IfThenZeroElse(hn::Le(y, hn::Zero(FloatTag())), dy);
  }
  static HWY_INLINE FloatVec ToFloat(V v) { return v; }
  static HWY_INLINE T One(T y, T dy) { return y <= 0 ? 0 : dy; }
  static HWY_INLINE float ToFloat(T x) { return x; }
};

// ReLU passes elements above 0 and NaN. Interpreted as signed integers, the
// bits of numbers from -0 down to -infinity are the smallest; 0 is 0.
constexpr int16_t kMinusInfinity = static_cast<int16_t>(0xff80);

HWY_INLINE bool IsActive(uint16_t bits) {
  return static_cast<int16_t>(bits) > kMinusInfinity && bits != 0;
}

struct Bf16Elements {
  using T = uint16_t;
  using V = hn::Vec<Bf16Tag>;
  static HWY_INLINE V Load(const T* p) { return hn::LoadU(Bf16Tag(), p); }
  static HWY_INLINE void Store(V v, T* p) { hn::StoreU(v, Bf16Tag(), p); }
  static HWY_INLINE V ZeroUnlessActive(V y, V dy) {
    const hn::RebindToSigned<Bf16Tag> d;
    const auto bits = hn::BitCast(d, y);
    const auto above = hn::Gt(bits, hn::Set(d, kMinusInfinity));
    const auto nonzero =
        hn::IfThenZeroElse(hn::Eq(bits, hn::Zero(d)), hn::BitCast(d, dy));
    return hn::BitCast(Bf16Tag(), hn::IfThenElseZero(above, nonzero));
  }
  static HWY_INLINE FloatVec ToFloat(V v) {
    const hn::RebindToUnsigned<FloatTag> d;
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(d, v)));
  }
  static HWY_INLINE T One(T y, T dy) { return IsActive(y) ? dy : T{0}; }
  static HWY_INLINE float ToFloat(T x) {
    return static_cast<float>(BFloat16::FromBits(x));
  }
};

// Computes and stores the gradient of one vector or element.
template <class E>
struct ReluGradSource {
  using Elements = E;
  using T = typename E::T;
  const T* y;
  const T* dy;
  T* dz;

  HWY_INLINE FloatVec Take(size_t i) const {
    const auto g = E::ZeroUnlessActive(E::Load(y + i), E::Load(dy + i));
    E::Store(g, dz + i);
    return E::ToFloat(g);
  }
  HWY_INLINE float TakeOne(size_t i) const {
    dz[i] = E::One(y[i], dy[i]);
    return E::ToFloat(dz[i]);
  }
};

template <class E>
struct PlainSource {
  using T = typename E::T;
  const T* x;

  HWY_INLINE FloatVec Take(size_t i) const {
    return E::ToFloat(E::Load(x + i));
  }
  HWY_INLINE float TakeOne(size_t i) const { return E::ToFloat(x[i]); }
};

// sums[j] += the elements (i, j) of kRows rows. The sums are kept in memory, so
// that the matrix is read in memory order.
template <size_t kRows, class Source>
HWY_INLINE void AddRows(const Source& source, size_t start, size_t n,
                        float* sums) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    FloatVec sum = source.Take(start + j);
    for (size_t i = 1; i < kRows; ++i) {
      sum = hn::Add(sum, source.Take(start + i * n + j));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sums + j), sum), d, sums + j);
  }
  for (; j < n; ++j) {
    float sum = source.TakeOne(start + j);
    for (size_t i = 1; i < kRows; ++i) {
      sum += source.TakeOne(start + i * n + j);
    }
    sums[j] += sum;
  }
}

template <class Source>
HWY_INLINE void SumColumns(const Source& source, size_t m, size_t n,
                           float* sums) {
  std::fill_n(sums, n, 0.0f);
  size_t i = 0;
  for (; i + 4 <= m; i += 4) AddRows<4>(source, i * n, n, sums);
  for (; i < m; ++i) AddRows<1>(source, i * n, n, sums);
}

void ReluBiasGradF32(const float* y, const float* dy, float* dz, float* db,
                     size_t m, size_t n) {
  SumColumns(ReluGradSource<FloatElements>{y, dy, dz}, m, n, db);
}

void ReluBiasGradBf16(const uint16_t* y, const uint16_t* dy, uint16_t* dz,
                      float* db, size_t m, size_t n) {
  SumColumns(ReluGradSource<Bf16Elements>{y, dy, dz}, m, n, db);
}

void ColumnSumsF32(const float* x, float* sums, size_t m, size_t n) {
  SumColumns(PlainSource<FloatElements>{x}, m, n, sums);
}

void ColumnSumsBf16(const uint16_t* x, float* sums, size_t m, size_t n) {
  SumColumns(PlainSource<Bf16Elements>{x}, m, n, sums);
}

struct AddReluOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V bias) const {
    const V sum = hn::Add(x, bias);
    return hn::IfThenZeroElse(hn::Le(sum, hn::Zero(d)), sum);
  }
};

void AddBiasRelu(const float* bias, float* rows, size_t m, size_t n) {
  for (size_t i = 0; i < m; ++i, rows += n) {
    Map2(AddReluOp(), rows, bias, rows, n);
  }
}

void ReluBf16(uint16_t* bits, size_t n) {
  const hn::ScalableTag<int16_t> d;
  const size_t lanes = hn::Lanes(d);
  auto* const p = reinterpret_cast<int16_t*>(bits);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, p + i);
    const auto above = hn::Gt(x, hn::Set(d, kMinusInfinity));
    hn::StoreU(hn::IfThenElseZero(above, x), d, p + i);
  }
  for (; i < n; ++i) {
    if (!IsActive(bits[i])) bits[i] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {

HWY_EXPORT(AddBiasRelu);
HWY_EXPORT(ReluBf16);
HWY_EXPORT(ReluBiasGradF32);
HWY_EXPORT(ReluBiasGradBf16);
HWY_EXPORT(ColumnSumsF32);
HWY_EXPORT(ColumnSumsBf16);

namespace {

static_assert(sizeof(BFloat16) == sizeof(uint16_t));

const uint16_t* Bits(const BFloat16* p) {
  return reinterpret_cast<const uint16_t*>(p);
}
uint16_t* Bits(BFloat16* p) { return reinterpret_cast<uint16_t*>(p); }

}  // namespace

void AddBiasRelu(const float* bias, float* rows, int64_t m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddBiasRelu)
  (bias, rows, static_cast<size_t>(m), static_cast<size_t>(n));
}

void ReluInPlace(BFloat16* x, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluBf16)(Bits(x), static_cast<size_t>(n));
}

void ReluBiasGrad(const float* y, const float* dy, float* dz, float* db,
                  int64_t m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluBiasGradF32)
  (y, dy, dz, db, static_cast<size_t>(m), static_cast<size_t>(n));
}

void ReluBiasGrad(const BFloat16* y, const BFloat16* dy, BFloat16* dz,
                  float* db, int64_t m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluBiasGradBf16)
  (Bits(y), Bits(dy), Bits(dz), db, static_cast<size_t>(m),
   static_cast<size_t>(n));
}

void ColumnSums(const float* x, float* sums, int64_t m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsF32)
  (x, sums, static_cast<size_t>(m), static_cast<size_t>(n));
}

void ColumnSums(const BFloat16* x, float* sums, int64_t m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsBf16)
  (Bits(x), sums, static_cast<size_t>(m), static_cast<size_t>(n));
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_INL_H_
