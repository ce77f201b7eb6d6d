// Loads of memory into the cache ahead of use.

#ifndef HAWSER_PS_STORAGE_PREFETCH_H_
#define HAWSER_PS_STORAGE_PREFETCH_H_

#include <cstddef>

#include "absl/base/attributes.h"

namespace hawser::ps {

// Of a row that is used in order: the processor itself loads the rest.
inline constexpr size_t kMaxPrefetchedBytes = 2048;

// Loads a cache line to the second-level cache, which processors fill with more
// lines at a time than the first.
//
// Always inlined: gcc 12 takes a function that only prefetches for one without
// effect, and removes its calls.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void PrefetchLine(const void* memory) {
  __builtin_prefetch(memory, 0, 2);
}

// The same for the cache lines of `bytes` bytes, at least one.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Prefetch(const void* memory,
                                                  size_t bytes) {
  const char* const begin = static_cast<const char*>(memory);
  for (size_t offset = 0; offset < bytes; offset += 64) {
    PrefetchLine(begin + offset);
  }
  // The last line, if `memory` is not aligned.
  PrefetchLine(begin + bytes - 1);
}

// The same for memory that is written next: takes the lines away from other
// cores.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void PrefetchToWrite(void* memory,
                                                         size_t bytes) {
  char* const begin = static_cast<char*>(memory);
  for (size_t offset = 0; offset < bytes; offset += 64) {
#if defined(__x86_64__)
    // gcc takes it for an extension, and loads the line to read it only.
    asm volatile("prefetchw %0" : : "m"(begin[offset]));
#else
    __builtin_prefetch(begin + offset, 1, 2);
#endif
  }
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PREFETCH_H_
