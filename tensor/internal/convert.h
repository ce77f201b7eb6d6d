// Conversion of element rows between dtypes.

#ifndef HAWSER_TENSOR_INTERNAL_CONVERT_H_
#define HAWSER_TENSOR_INTERNAL_CONVERT_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/dtype.h"

namespace hawser::tensor::internal {

// Converts one element. To a narrower float: nearest even (from f64 to a 16-bit
// type by way of float). Float to integer: truncated, clamped to the range, NaN
// to 0. Integer to narrower integer: low bits. To bool: whether not 0.
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
