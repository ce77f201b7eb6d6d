#include "tensor/internal/convert.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/half_convert.h"

namespace hawser::tensor::internal {
namespace {

// Elements as rows read and write them: a bool is a byte that may hold
// anything.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class To, class From>
inline Stored<To> ConvertStored(Stored<From> value) {
  if constexpr (std::is_same_v<From, bool>) {
    return ConvertElement<To>(value != 0);
  } else {
    return ConvertElement<To>(value);
  }
}

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class To, class From>
void ConvertDense(const Stored<From>* source, Stored<To>* dest, int64_t count);

// Between a 16-bit type and another, by way of a float either end has vector
// loops for.
template <class To, class From>
void ConvertThroughFloat(const Stored<From>* source, Stored<To>* dest,
                         int64_t count) {
  constexpr int64_t kBlock = 256;
  std::array<float, kBlock> floats;
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    if constexpr (kIsWiderThanFloat<From>) {
      for (int64_t j = 0; j < n; ++j) floats[j] = RoundToOdd(source[i + j]);
    } else {
      ConvertDense<float, From>(source + i, floats.data(), n);
    }
    ConvertDense<To, float>(floats.data(), dest + i, n);
  }
}

template <class To, class From>
void ConvertDense(const Stored<From>* source, Stored<To>* dest, int64_t count) {
  if constexpr (std::is_same_v<To, From> && !std::is_same_v<To, bool>) {
    if (count > 0) std::memcpy(dest, source, count * sizeof(*dest));
  } else if constexpr (std::is_same_v<To, Half> &&
                       std::is_same_v<From, float>) {
    FloatToHalf(source, dest, count);
  } else if constexpr (std::is_same_v<To, float> &&
                       std::is_same_v<From, Half>) {
    HalfToFloat(source, dest, count);
  } else if constexpr (std::is_same_v<To, BFloat16> &&
                       std::is_same_v<From, float>) {
    FloatToBFloat16(source, dest, count);
  } else if constexpr (std::is_same_v<To, float> &&
                       std::is_same_v<From, BFloat16>) {
    BFloat16ToFloat(source, dest, count);
  } else if constexpr ((kIsHalf<From> && !std::is_same_v<To, float>) ||
                       (kIsHalf<To> && !std::is_same_v<From, float>)) {
    ConvertThroughFloat<To, From>(source, dest, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      dest[i] = ConvertStored<To, From>(source[i]);
    }
  }
}

template <class To, class From>
void ConvertAnyRow(const void* source, int64_t source_stride, void* dest,
                   int64_t dest_stride, int64_t count) {
  const auto* from = static_cast<const Stored<From>*>(source);
  auto* to = static_cast<Stored<To>*>(dest);
  if (source_stride == 1 && dest_stride == 1) {
    ConvertDense<To, From>(from, to, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i * dest_stride] = ConvertStored<To, From>(from[i * source_stride]);
  }
}

template <class To>
ConvertRowFn ConvertRowTo(DType from) {
  return VisitDType(from, []<class From>() -> ConvertRowFn {
    return &ConvertAnyRow<To, From>;
  });
}

}  // namespace

ConvertRowFn ConvertRow(DType to, DType from) {
  return VisitDType(to, [from]<class To>() -> ConvertRowFn {
    return ConvertRowTo<To>(from);
  });
}

}  // namespace hawser::tensor::internal
