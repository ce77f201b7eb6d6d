// Element types of tensors.

#ifndef HAWSER_TENSOR_DTYPE_H_
#define HAWSER_TENSOR_DTYPE_H_

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tensor/half.h"

namespace hawser::tensor {

enum class DType : uint8_t {
  kF32,
  kF64,
  kF16,   // IEEE 754 binary16.
  kBF16,  // The upper half of a binary32.
  kI64,
  kI32,
  kU8,
  kBool,  // One byte, 0 or 1.
};

inline constexpr int kNumDTypes = 8;

constexpr int64_t ItemBytes(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  std::abort();
}

constexpr bool IsFloatingPoint(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

// The accumulation dtype for elements of `dtype`: f32 for 16-bit dtypes, whose
// sums of ones would stop growing at 2048 or 256; `dtype` itself for all
// others.
constexpr DType SumDType(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

// "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool".
std::string_view DTypeName(DType dtype);

// The inverse of DTypeName().
std::optional<DType> DTypeFromName(std::string_view name);

std::ostream& operator<<(std::ostream& out, DType dtype);

// The dtype of elements of C++ type `T`: float, double, Half, BFloat16,
// int64_t, int32_t, uint8_t or bool.
template <class T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<T, Half>) {
    return DType::kF16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DType::kBF16;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return DType::kI64;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return DType::kI32;
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return DType::kU8;
  } else {
    static_assert(std::is_same_v<T, bool>, "not the C++ type of a dtype");
    return DType::kBool;
  }
}

// Calls `visitor.operator()<T>()` with the C++ type of `dtype`:
//
//   VisitDType(t.dtype(), [&]<class T>() { Fill(t.data<T>(), ...); });
template <class Visitor>
decltype(auto) VisitDType(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kF32:
      return std::forward<Visitor>(visitor).template operator()<float>();
    case DType::kF64:
      return std::forward<Visitor>(visitor).template operator()<double>();
    case DType::kF16:
      return std::forward<Visitor>(visitor).template operator()<Half>();
    case DType::kBF16:
      return std::forward<Visitor>(visitor).template operator()<BFloat16>();
    case DType::kI64:
      return std::forward<Visitor>(visitor).template operator()<int64_t>();
    case DType::kI32:
      return std::forward<Visitor>(visitor).template operator()<int32_t>();
    case DType::kU8:
      return std::forward<Visitor>(visitor).template operator()<uint8_t>();
    case DType::kBool:
      return std::forward<Visitor>(visitor).template operator()<bool>();
  }
  std::abort();
}

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_DTYPE_H_
