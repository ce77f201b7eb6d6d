#include "tensor/half_convert.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define HAWSER_TENSOR_X86 1
#endif

namespace hawser::tensor {
namespace {

template <class To, class From>
void ConvertEach(const From* source, To* dest, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dest[i] = static_cast<To>(source[i]);
}

#ifdef HAWSER_TENSOR_X86

// Which of the loops below this machine runs. Each converts as many elements as
// fill whole vectors, and returns how many.
struct VectorLoops {
  bool f16c;
  bool avx2;
};

const VectorLoops& Loops() {
  static const VectorLoops loops = [] {
    __builtin_cpu_init();
    // Clang 14 has no name for F16C. Whether the system saves the registers
    // that it uses is part of the answer about AVX.
    unsigned eax, ebx, ecx = 0, edx;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    return VectorLoops{
        .f16c = __builtin_cpu_supports("avx") && (ecx & bit_F16C) != 0,
        .avx2 = __builtin_cpu_supports("avx2") != 0};
  }();
  return loops;
}

__attribute__((target("avx,f16c"))) int64_t FloatToHalfVectors(
    const float* source, Half* dest, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dest + i), halves);
  }
  return i;
}

__attribute__((target("avx,f16c"))) int64_t HalfToFloatVectors(
    const Half* source, float* dest, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
    _mm256_storeu_ps(dest + i, _mm256_cvtph_ps(halves));
  }
  return i;
}

// BFloat16(float) on eight lanes; each result is in the low half of its lane.
__attribute__((target("avx2"))) inline __m256i RoundToBFloat16(
    const float* source) {
  const __m256i u =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  const __m256i high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
      16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i is_nan =
      _mm256_cmpgt_epi32(_mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff)),
                         _mm256_set1_epi32(0x7f800000));
  return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

__attribute__((target("avx2"))) int64_t FloatToBFloat16Vectors(
    const float* source, BFloat16* dest, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    // Packs by 128-bit lanes: 0-3 8-11 4-7 12-15.
    const __m256i packed = _mm256_packus_epi32(RoundToBFloat16(source + i),
                                               RoundToBFloat16(source + i + 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dest + i),
                        _mm256_permute4x64_epi64(packed, 0b11011000));
  }
  return i;
}

__attribute__((target("avx2"))) int64_t BFloat16ToFloatVectors(
    const BFloat16* source, float* dest, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bits =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
    const __m256i floats = _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dest + i), floats);
  }
  return i;
}

#endif  // HAWSER_TENSOR_X86

}  // namespace

void FloatToHalf(const float* source, Half* dest, int64_t count) {
  int64_t done = 0;
#ifdef HAWSER_TENSOR_X86
  if (Loops().f16c) done = FloatToHalfVectors(source, dest, count);
#endif
  ConvertEach(source + done, dest + done, count - done);
}

void HalfToFloat(const Half* source, float* dest, int64_t count) {
  int64_t done = 0;
#ifdef HAWSER_TENSOR_X86
  if (Loops().f16c) done = HalfToFloatVectors(source, dest, count);
#endif
  ConvertEach(source + done, dest + done, count - done);
}

void FloatToBFloat16(const float* source, BFloat16* dest, int64_t count) {
  int64_t done = 0;
#ifdef HAWSER_TENSOR_X86
  if (Loops().avx2) done = FloatToBFloat16Vectors(source, dest, count);
#endif
  ConvertEach(source + done, dest + done, count - done);
}

void BFloat16ToFloat(const BFloat16* source, float* dest, int64_t count) {
  int64_t done = 0;
#ifdef HAWSER_TENSOR_X86
  if (Loops().avx2) done = BFloat16ToFloatVectors(source, dest, count);
#endif
  ConvertEach(source + done, dest + done, count - done);
}

}  // namespace hawser::tensor
