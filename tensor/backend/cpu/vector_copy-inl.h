// The functions of vector_copy.h, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_copy.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Copies whole cache lines; `out` is aligned to a cache line.
void StreamLines(uint8_t* HWY_RESTRICT out, const uint8_t* HWY_RESTRICT in,
                 size_t size) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < size; i += lanes) {
    hn::Stream(hn::LoadU(d, in + i), d, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {
namespace {

constexpr size_t kLineBytes = 64;

}  // namespace

HWY_EXPORT(StreamLines);

void StreamCopy(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  auto* in = static_cast<const uint8_t*>(from);
  const size_t head =
      std::min(size, -reinterpret_cast<uintptr_t>(out) & (kLineBytes - 1));
  std::memcpy(out, in, head);
  const size_t lines = (size - head) & ~(kLineBytes - 1);
  HWY_DYNAMIC_DISPATCH(StreamLines)(out + head, in + head, lines);
  const size_t done = head + lines;
  std::memcpy(out + done, in + done, size - done);
}

void FinishStreamCopies() { hwy::FlushStream(); }

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_INL_H_
