// Conversion of runs of elements, of any dtype and stride, to and from one of
// three compute types: float for f32, f16 and bf16; double for f64; int64_t for
// integers and bool, whose low bits equal the result of narrower arithmetic.
#ifndef HAWSER_TENSOR_BACKEND_CPU_BLOCK_IO_H_
#define HAWSER_TENSOR_BACKEND_CPU_BLOCK_IO_H_

#include <cstdint>
#include <utility>

#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

// Elements processed at once; buffers of this size fit in the L1 cache.
inline constexpr int64_t kBlock = 512;

// Calls visitor.operator()<C>() with the compute type of `dtype`.
template <class Visitor>
decltype(auto) VisitComputeType(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return std::forward<Visitor>(visitor).template operator()<float>();
    case DType::kF64:
      return std::forward<Visitor>(visitor).template operator()<double>();
    default:
      return std::forward<Visitor>(visitor).template operator()<int64_t>();
  }
}

// As VisitComputeType(), for floating-point dtypes.
template <class Visitor>
decltype(auto) VisitFloatComputeType(DType dtype, Visitor&& visitor) {
  if (dtype == DType::kF64) {
    return std::forward<Visitor>(visitor).template operator()<double>();
  }
  return std::forward<Visitor>(visitor).template operator()<float>();
}

// Whether elements of `dtype` have type `C` in memory.
template <class C>
constexpr bool IsComputeType(DType dtype) {
  return dtype == DTypeOf<C>();
}

// Reads `n` elements from `base` + `offset` on, `stride` apart (0 repeats one).
// Returns a pointer to them if they are dense and of type `C`, else to
// `buffer`, which has space for n.
template <class C>
const C* ReadBlock(DType dtype, const void* base, int64_t offset,
                   int64_t stride, int64_t n, C* buffer);

// Writes `n` elements of `block`.
template <class C>
void WriteBlock(DType dtype, void* base, int64_t offset, int64_t stride,
                int64_t n, const C* block);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_BLOCK_IO_H_
