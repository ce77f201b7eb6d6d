// Annotations that tell AddressSanitizer which bytes must not be accessed;
// no-ops without it.

#ifndef HAWSER_TENSOR_MEMORY_POISON_H_
#define HAWSER_TENSOR_MEMORY_POISON_H_

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HAWSER_TENSOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAWSER_TENSOR_ASAN 1
#endif
#endif

#ifdef HAWSER_TENSOR_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace hawser::tensor::internal {

inline void Poison([[maybe_unused]] const void* begin,
                   [[maybe_unused]] size_t bytes) {
#ifdef HAWSER_TENSOR_ASAN
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

inline void Unpoison([[maybe_unused]] const void* begin,
                     [[maybe_unused]] size_t bytes) {
#ifdef HAWSER_TENSOR_ASAN
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_MEMORY_POISON_H_
