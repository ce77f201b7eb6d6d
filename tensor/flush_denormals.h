// Arithmetic without denormal numbers.
#ifndef HAWSER_TENSOR_FLUSH_DENORMALS_H_
#define HAWSER_TENSOR_FLUSH_DENORMALS_H_

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace hawser::tensor {

// While it lives, floating-point operations of this thread take denormal
// operands for zero, and return zero instead of a denormal result: on common
// processors each such operand or result otherwise costs more than a hundred
// cycles. Numbers decay to denormal ones, and can then stay such forever: the
// momentum of a weight whose gradient has become zero, for example.
//
// On processors other than x86-64 and AArch64 it has no effect.
class [[nodiscard]] FlushDenormals {
 public:
  FlushDenormals() : before_(Get()) {
    if ((before_ & kBits) != kBits) Set(before_ | kBits);
  }
  // Leaves the flags of exceptions as they are.
  ~FlushDenormals() {
    if ((before_ & kBits) != kBits) Set((Get() & ~kBits) | (before_ & kBits));
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  // Of MXCSR: flush to zero, and denormals are zeros.
  static constexpr uint64_t kBits = 0x8040;
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t value) {
    _mm_setcsr(static_cast<unsigned int>(value));
  }
#elif defined(__aarch64__)
  // Of FPCR: flush-to-zero.
  static constexpr uint64_t kBits = uint64_t{1} << 24;
  static uint64_t Get() {
    uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Set(uint64_t value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
  static constexpr uint64_t kBits = 0;
  static uint64_t Get() { return 0; }
  static void Set(uint64_t) {}
#endif

  const uint64_t before_;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_FLUSH_DENORMALS_H_
