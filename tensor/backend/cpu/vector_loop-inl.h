// Loops of vector operations over dense floats. Included once per instruction
// set, by sources that include hwy/foreach_target.h.
//
// Operations are functors called as op(d, v) or op(d, v, w) with a Highway
// descriptor and vectors of its type. Outputs may be the inputs. The loops are
// not inlined: callers that select among many operations would become so large
// that compilation, especially with sanitizers, takes minutes.
#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_LOOP_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_LOOP_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_LOOP_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_LOOP_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// The first `n` lanes, n < Lanes(), with `fill` in the others.
HWY_INLINE FloatVec LoadSome(FloatTag d, const float* p, size_t n,
                             float fill = 0.0f) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = i < n ? p[i] : fill;
  return hn::Load(d, lanes);
#else
  const auto mask = hn::FirstN(d, n);
  const auto v = hn::MaskedLoad(mask, d, p);
  return fill == 0.0f ? v : hn::IfThenElse(mask, v, hn::Set(d, fill));
#endif
}

// Writes the first `n` lanes, n < Lanes().
HWY_INLINE void StoreSome(FloatVec v, FloatTag d, float* p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#endif
}

template <class Op>
HWY_NOINLINE void Map(const Op& op, const float* in, float* out, size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(op(d, hn::LoadU(d, in + i)), d, out + i);
  }
  if (i < n) {
    StoreSome(op(d, LoadSome(d, in + i, n - i)), d, out + i, n - i);
  }
}

template <class Op>
HWY_NOINLINE void Map2(const Op& op, const float* a, const float* b, float* out,
                       size_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(op(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  if (i < n) {
    const auto x = LoadSome(d, a + i, n - i), y = LoadSome(d, b + i, n - i);
    StoreSome(op(d, x, y), d, out + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_LOOP_INL_H_
