// Access to tensor elements in CUDA sources: load, store, atomic add, and the
// C++ type of each dtype.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_ELEMENT_H_
#define HAWSER_TENSOR_BACKEND_CUDA_ELEMENT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// The compute type of elements `T`.
template <class T>
using ComputeType = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

template <class T>
__device__ inline ComputeType<T> Load(const T* p) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(*p);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(*p);
  } else if constexpr (std::is_same_v<T, bool>) {
    // Read as a byte, because bytes from a peer or a file need not be 0 or 1.
    return *reinterpret_cast<const uint8_t*>(p) != 0;
  } else {
    return static_cast<ComputeType<T>>(*p);
  }
}

// Rounded once, to nearest even.
template <class T, class C>
__device__ inline void Store(T* p, C value) {
  if constexpr (std::is_same_v<T, __half>) {
    if constexpr (std::is_same_v<C, double>) {
      *p = __double2half(value);
    } else if constexpr (std::is_integral_v<C>) {
      *p = __ll2half_rn(value);
    } else {
      *p = __float2half_rn(value);
    }
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if constexpr (std::is_same_v<C, double>) {
      *p = __double2bfloat16(value);
    } else if constexpr (std::is_integral_v<C>) {
      *p = __ll2bfloat16_rn(value);
    } else {
      *p = __float2bfloat16_rn(value);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    *p = value != C(0);
  } else {
    *p = static_cast<T>(value);
  }
}

// Atomic addition. The order of additions, and thus the last bit of a sum, is
// unspecified. T has at least 32 bits.
template <class T>
__device__ inline void AtomicAdd(T* p, ComputeType<T> value) {
  static_assert(sizeof(T) >= 4);
  if constexpr (std::is_same_v<T, int64_t>) {
    atomicAdd(reinterpret_cast<unsigned long long*>(p),
              static_cast<unsigned long long>(value));
  } else {
    atomicAdd(p, static_cast<T>(value));
  }
}

template <class T>
const T* In(const Tensor& tensor) {
  return static_cast<const T*>(tensor.raw_data());
}
template <class T>
T* Out(Tensor& tensor) {
  return static_cast<T*>(tensor.raw_data());
}

inline absl::Status NoSuchDType(DType dtype, const char* operation) {
  const std::string_view name = DTypeName(dtype);
  return absl::UnimplementedError(
      absl::StrCat(operation, " of ",
                   absl::string_view(name.data(), name.size()), " on cuda"));
}

// Calls visitor.operator()<T>(), which returns a status, with the device's type
// of a floating-point `dtype`; kUnimplemented for others.
template <class Visitor>
absl::Status VisitFloat(DType dtype, const char* operation, Visitor&& visitor) {
  switch (dtype) {
    case DType::kF32:
      return std::forward<Visitor>(visitor).template operator()<float>();
    case DType::kF64:
      return std::forward<Visitor>(visitor).template operator()<double>();
    case DType::kF16:
      return std::forward<Visitor>(visitor).template operator()<__half>();
    case DType::kBF16:
      return std::forward<Visitor>(visitor)
          .template operator()<__nv_bfloat16>();
    default:
      return NoSuchDType(dtype, operation);
  }
}

// As VisitFloat(), for f32 and f64.
template <class Visitor>
absl::Status VisitFloatSum(DType dtype, const char* operation,
                           Visitor&& visitor) {
  switch (dtype) {
    case DType::kF32:
      return std::forward<Visitor>(visitor).template operator()<float>();
    case DType::kF64:
      return std::forward<Visitor>(visitor).template operator()<double>();
    default:
      return NoSuchDType(dtype, operation);
  }
}

// As VisitFloat(), for the dtypes that AtomicAdd() supports.
template <class Visitor>
absl::Status VisitAddable(DType dtype, const char* operation,
                          Visitor&& visitor) {
  switch (dtype) {
    case DType::kI64:
      return std::forward<Visitor>(visitor).template operator()<int64_t>();
    case DType::kI32:
      return std::forward<Visitor>(visitor).template operator()<int32_t>();
    default:
      return VisitFloatSum(dtype, operation, std::forward<Visitor>(visitor));
  }
}

// As VisitFloat(), for all dtypes but bool.
template <class Visitor>
absl::Status VisitNumber(DType dtype, const char* operation,
                         Visitor&& visitor) {
  switch (dtype) {
    case DType::kI64:
      return std::forward<Visitor>(visitor).template operator()<int64_t>();
    case DType::kI32:
      return std::forward<Visitor>(visitor).template operator()<int32_t>();
    case DType::kU8:
      return std::forward<Visitor>(visitor).template operator()<uint8_t>();
    default:
      return VisitFloat(dtype, operation, std::forward<Visitor>(visitor));
  }
}

// Calls visitor.operator()<Word>() with an unsigned integer as large as an
// element of `dtype`, for kernels that only move elements.
template <class Visitor>
absl::Status VisitWord(DType dtype, Visitor&& visitor) {
  switch (ItemBytes(dtype)) {
    case 1:
      return std::forward<Visitor>(visitor).template operator()<uint8_t>();
    case 2:
      return std::forward<Visitor>(visitor).template operator()<uint16_t>();
    case 4:
      return std::forward<Visitor>(visitor).template operator()<uint32_t>();
    default:
      return std::forward<Visitor>(visitor).template operator()<uint64_t>();
  }
}

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_ELEMENT_H_
