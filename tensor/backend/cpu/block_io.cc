#include "tensor/backend/cpu/block_io.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"

namespace hawser::tensor::cpu {
namespace {

template <class T>
inline constexpr bool kIs16Bit =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

void ToFloat(const Half* in, float* out, int64_t n) { HalfToFloat(in, out, n); }
void ToFloat(const BFloat16* in, float* out, int64_t n) {
  BFloat16ToFloat(in, out, n);
}
void FromFloat(const float* in, Half* out, int64_t n) {
  FloatToHalf(in, out, n);
}
void FromFloat(const float* in, BFloat16* out, int64_t n) {
  FloatToBFloat16(in, out, n);
}

template <class T, class C>
void ReadAs(const T* in, int64_t stride, int64_t n, C* buffer) {
  if (stride == 0 && n > 0) {
    std::fill_n(buffer, n, static_cast<C>(*in));
    return;
  }
  if constexpr (kIs16Bit<T>) {
    if (stride == 1) return ToFloat(in, buffer, n);
  }
  for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<C>(in[i * stride]);
}

// Bytes from a peer or a file need not be 0 or 1; any nonzero byte means true.
void ReadAs(const bool* in, int64_t stride, int64_t n, int64_t* buffer) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(in);
  for (int64_t i = 0; i < n; ++i) buffer[i] = bytes[i * stride] != 0;
}

template <class T, class C>
void WriteAs(T* out, int64_t stride, int64_t n, const C* block) {
  if constexpr (kIs16Bit<T>) {
    if (stride == 1) return FromFloat(block, out, n);
  }
  for (int64_t i = 0; i < n; ++i) out[i * stride] = static_cast<T>(block[i]);
}

// Whether `T` is a dtype computed in `C`.
template <class T, class C>
inline constexpr bool kComputedIn =
    std::is_same_v<C, float>    ? std::is_same_v<T, float> || kIs16Bit<T>
    : std::is_same_v<C, double> ? std::is_same_v<T, double>
                                : std::is_integral_v<T>;

}  // namespace

template <class C>
const C* ReadBlock(DType dtype, const void* base, int64_t offset,
                   int64_t stride, int64_t n, C* buffer) {
  if (IsComputeType<C>(dtype) && stride == 1) {
    return static_cast<const C*>(base) + offset;
  }
  VisitDType(dtype, [&]<class T>() {
    if constexpr (kComputedIn<T, C>) {
      ReadAs(static_cast<const T*>(base) + offset, stride, n, buffer);
    }
  });
  return buffer;
}

template <class C>
void WriteBlock(DType dtype, void* base, int64_t offset, int64_t stride,
                int64_t n, const C* block) {
  if (IsComputeType<C>(dtype) && stride == 1) {
    std::copy_n(block, n, static_cast<C*>(base) + offset);
    return;
  }
  VisitDType(dtype, [&]<class T>() {
    if constexpr (kComputedIn<T, C>) {
      WriteAs(static_cast<T*>(base) + offset, stride, n, block);
    }
  });
}

template const float* ReadBlock(DType, const void*, int64_t, int64_t, int64_t,
                                float*);
template const double* ReadBlock(DType, const void*, int64_t, int64_t, int64_t,
                                 double*);
template const int64_t* ReadBlock(DType, const void*, int64_t, int64_t, int64_t,
                                  int64_t*);
template void WriteBlock(DType, void*, int64_t, int64_t, int64_t, const float*);
template void WriteBlock(DType, void*, int64_t, int64_t, int64_t,
                         const double*);
template void WriteBlock(DType, void*, int64_t, int64_t, int64_t,
                         const int64_t*);
// Results of comparisons.
template void WriteBlock(DType, void*, int64_t, int64_t, int64_t, const bool*);

}  // namespace hawser::tensor::cpu
