// Conversion of element rows between dtypes.

#ifndef HAWSER_TENSOR_INTERNAL_CONVERT_H_
#define HAWSER_TENSOR_INTERNAL_CONVERT_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/dtype.h"

namespace hawser::tensor::internal {

// `value` as a float, of the two that it lies between the one whose last bit is
// set: a 16-bit number made of it is the one nearest to `value` itself. Boldo
// and Melquiond, "Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd", 2008.
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}
inline float RoundToOdd(int32_t value) {
  return RoundToOdd(static_cast<double>(value));
}
inline float RoundToOdd(int64_t value) {
  // A double holds 53 bits; the last stands for those that are cut off.
  const double sign = value < 0 ? -1 : 1;
  uint64_t bits = static_cast<uint64_t>(value);
  if (value < 0) bits = -bits;
  if (bits >> 53 != 0) {
    constexpr uint64_t kCut = (uint64_t{1} << 11) - 1;
    bits = (bits & ~kCut) | ((bits & kCut) != 0 ? kCut + 1 : 0);
  }
  return RoundToOdd(sign * static_cast<double>(bits));
}

// Whether a float need not hold a `From`.
template <class From>
inline constexpr bool kIsWiderThanFloat =
    std::is_same_v<From, double> || std::is_same_v<From, int64_t> ||
    std::is_same_v<From, int32_t>;

// Converts one element. To a narrower float: nearest even. Float to integer:
// truncated, clamped to the range, NaN to 0. Integer to narrower integer: low
// bits. To bool: whether not 0.
template <class To, class From>
inline To ConvertElement(From value) {
  constexpr bool kFromHalf =
      std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>;
  constexpr bool kToHalf =
      std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kFromHalf) {
    return ConvertElement<To>(static_cast<float>(value));
  } else if constexpr (kToHalf && kIsWiderThanFloat<From>) {
    return To(RoundToOdd(value));
  } else if constexpr (kToHalf) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    // The limits as floats: the lower is exact, the upper may be one too many.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());
    if (value >= kHigh) return std::numeric_limits<To>::max();
    if (value <= kLow) return std::numeric_limits<To>::min();
    return value == value ? static_cast<To>(value) : To{0};
  } else {
    return static_cast<To>(value);
  }
}

// Converts `count` elements; strides are in elements. Does not overlap. Bytes
// of kBool sources other than 0 and 1 count as 1.
using ConvertRowFn = void (*)(const void* source, int64_t source_stride,
                              void* dest, int64_t dest_stride, int64_t count);

ConvertRowFn ConvertRow(DType to, DType from);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_INTERNAL_CONVERT_H_
