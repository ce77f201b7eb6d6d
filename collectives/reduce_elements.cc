#include "collectives/reduce_elements.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/reduce_elements.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::collectives {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Bytes of a block, which stays in the L1 cache while all sources are reduced.
inline constexpr size_t kBlockBytes = 4096;

template <class T>
HWY_INLINE T Wrap(ReduceOp op, T a, T b) {
  // Of signed integers, the overflow of unsigned ones is defined. Narrow ones
  // would be promoted to int.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const U x = static_cast<U>(a);
  const U y = static_cast<U>(b);
  switch (op) {
    case ReduceOp::kProduct:
      return static_cast<T>(x * y);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBitAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitOr:
      return static_cast<T>(x | y);
    case ReduceOp::kBitXor:
      return static_cast<T>(x ^ y);
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return static_cast<T>(x + y);
  }
  return a;
}

// Integers, except sums. `output` may be `a` or `b`.
template <class T>
void CombineIntegers(ReduceOp op, const T* a, const T* b, T* output,
                     size_t count) {
  for (size_t i = 0; i < count; ++i) output[i] = Wrap(op, a[i], b[i]);
}

// Calls `combine(d, x, y)` for the vectors of two arrays.
template <class T, class Combine>
HWY_INLINE void ForVectors(const T* a, const T* b, T* output, size_t count,
                           const Combine& combine) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(combine(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d,
               output + i);
  }
  const hn::CappedTag<T, 1> one;
  for (; i < count; ++i) {
    hn::StoreU(combine(one, hn::LoadU(one, a + i), hn::LoadU(one, b + i)), one,
               output + i);
  }
}

// Operations on vectors. Not lambdas, which some compilers build for another
// instruction set than that of their callers, unless they are marked.
struct AddVectors {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
};

struct MultiplyVectors {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V y) const {
    return hn::Mul(x, y);
  }
};

// The smaller one, or NaN.
struct MinVectors {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V y) const {
    const V known = hn::IfThenElse(hn::IsNaN(y), y, hn::Min(x, y));
    return hn::IfThenElse(hn::IsNaN(x), x, known);
  }
};

// The larger one, or NaN.
struct MaxVectors {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V y) const {
    const V known = hn::IfThenElse(hn::IsNaN(y), y, hn::Max(x, y));
    return hn::IfThenElse(hn::IsNaN(x), x, known);
  }
};

template <class T>
struct DivideVectors {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V) const {
    return hn::Div(x, hn::Set(d, by));
  }
  T by;
};

template <class T>
void Combine(ReduceOp op, const T* a, const T* b, T* output, size_t count) {
  if (op == ReduceOp::kSum || op == ReduceOp::kAverage) {
    ForVectors(a, b, output, count, AddVectors());
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kProduct) {
      ForVectors(a, b, output, count, MultiplyVectors());
    } else if (op == ReduceOp::kMin) {
      ForVectors(a, b, output, count, MinVectors());
    } else {
      ForVectors(a, b, output, count, MaxVectors());
    }
  } else {
    CombineIntegers(op, a, b, output, count);
  }
}

template <class T>
void Divide(T* values, size_t count, size_t divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    ForVectors(values, values, values, count,
               DivideVectors<T>{static_cast<T>(divisor)});
  } else {
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<T>(values[i] / static_cast<int64_t>(divisor));
    }
  }
}

void ToFloat(const tensor::Half* from, float* to, size_t count) {
  tensor::HalfToFloat(from, to, static_cast<int64_t>(count));
}
void ToFloat(const tensor::BFloat16* from, float* to, size_t count) {
  tensor::BFloat16ToFloat(from, to, static_cast<int64_t>(count));
}
void FromFloat(const float* from, tensor::Half* to, size_t count) {
  tensor::FloatToHalf(from, to, static_cast<int64_t>(count));
}
void FromFloat(const float* from, tensor::BFloat16* to, size_t count) {
  tensor::FloatToBFloat16(from, to, static_cast<int64_t>(count));
}

// The arrays of a type at `offset` elements.
template <class T>
const T* At(const std::byte* array, size_t offset) {
  return reinterpret_cast<const T*>(array) + offset;
}

template <class T>
void ReduceNarrow(ReduceOp op, std::span<const std::byte* const> sources,
                  std::byte* output, size_t count, size_t divisor) {
  constexpr size_t kBlock = kBlockBytes / sizeof(float);
  float total[kBlock];
  float operand[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = std::min(kBlock, count - begin);
    ToFloat(At<T>(sources[0], begin), total, block);
    for (const std::byte* source : sources.subspan(1)) {
      ToFloat(At<T>(source, begin), operand, block);
      Combine(op, total, operand, total, block);
    }
    if (op == ReduceOp::kAverage) Divide(total, block, divisor);
    FromFloat(total, reinterpret_cast<T*>(output) + begin, block);
  }
}

template <class T>
void ReduceWide(ReduceOp op, std::span<const std::byte* const> sources,
                std::byte* output, size_t count, size_t divisor) {
  constexpr size_t kBlock = kBlockBytes / sizeof(T);
  T partial[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = std::min(kBlock, count - begin);
    T* const to = reinterpret_cast<T*>(output) + begin;
    const size_t last = sources.size() - 1;
    const T* total = At<T>(sources[0], begin);
    for (size_t i = 1; i <= last; ++i) {
      // The output may be a source that is still to come.
      T* const sum = i == last ? to : partial;
      Combine(op, total, At<T>(sources[i], begin), sum, block);
      total = sum;
    }
    if (total != to) std::memcpy(to, total, block * sizeof(T));
    if (op == ReduceOp::kAverage) Divide(to, block, divisor);
  }
}

void ReduceArrays(const Reduction& reduction,
                  std::span<const std::byte* const> sources, std::byte* output,
                  size_t bytes, size_t divisor) {
  tensor::VisitDType(reduction.dtype, [&]<class T>() {
    const size_t count = bytes / sizeof(T);
    if constexpr (std::is_same_v<T, tensor::Half> ||
                  std::is_same_v<T, tensor::BFloat16>) {
      ReduceNarrow<T>(reduction.op, sources, output, count, divisor);
    } else if constexpr (std::is_same_v<T, bool>) {
      // CheckReduction refuses it.
      ReduceWide<uint8_t>(reduction.op, sources, output, count, divisor);
    } else {
      ReduceWide<T>(reduction.op, sources, output, count, divisor);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::collectives
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::collectives {

HWY_EXPORT(ReduceArrays);

void ReduceElements(const Reduction& reduction,
                    std::span<const std::byte* const> sources,
                    std::byte* output, size_t bytes, size_t divisor) {
  HWY_DYNAMIC_DISPATCH(ReduceArrays)
  (reduction, sources, output, bytes, divisor == 0 ? sources.size() : divisor);
}

}  // namespace hawser::collectives
#endif  // HWY_ONCE
