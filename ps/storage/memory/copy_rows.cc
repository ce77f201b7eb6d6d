#include "ps/storage/memory/copy_rows.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAWSER_PS_X86 1
#endif

namespace hawser::ps {
namespace {

template <size_t kBytes>
void CopyRows(const std::byte* const* rows, const uint32_t* positions,
              size_t count, std::byte* copies) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(copies + positions[i] * kBytes, rows[i], kBytes);
  }
}

#ifdef HAWSER_PS_X86

// gcc copies 16 bytes at a time, also for processors with AVX.
template <size_t kBytes>
__attribute__((target("avx"))) void CopyRowsAvx(const std::byte* const* rows,
                                                const uint32_t* positions,
                                                size_t count,
                                                std::byte* copies) {
  for (size_t i = 0; i < count; ++i) {
    std::byte* const copy = copies + positions[i] * kBytes;
#pragma GCC unroll 8
    for (size_t offset = 0; offset < kBytes; offset += 32) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(copy + offset),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
                              rows[i] + offset)));
    }
  }
}

template <size_t kBytes>
RowCopier CopierOf() {
  if (__builtin_cpu_supports("avx")) return CopyRowsAvx<kBytes>;
  return CopyRows<kBytes>;
}

#else

template <size_t kBytes>
RowCopier CopierOf() {
  return CopyRows<kBytes>;
}

#endif  // HAWSER_PS_X86

}  // namespace

RowCopier RowCopierFor(size_t row_bytes) {
  switch (row_bytes) {
    case 32:
      return CopierOf<32>();
    case 64:
      return CopierOf<64>();
    case 128:
      return CopierOf<128>();
    case 256:
      return CopierOf<256>();
    default:
      return nullptr;
  }
}

}  // namespace hawser::ps
