// Mapped memory in huge pages.

#ifndef HAWSER_TENSOR_MEMORY_HUGE_PAGES_H_
#define HAWSER_TENSOR_MEMORY_HUGE_PAGES_H_

#include <cstddef>

namespace hawser::tensor {

inline constexpr size_t kPageBytes = size_t{4} << 10;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Maps zeroed memory at a multiple of kHugePageBytes, in huge pages if the
// system has them. `bytes` is a multiple of kPageBytes. Null: the system has no
// more memory. To be returned by munmap.
std::byte* MapHugePages(size_t bytes);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_HUGE_PAGES_H_
