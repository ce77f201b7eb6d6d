// Mapped memory in huge pages.

#ifndef HAWSER_PS_STORAGE_MEMORY_HUGE_PAGES_H_
#define HAWSER_PS_STORAGE_MEMORY_HUGE_PAGES_H_

#include <cstddef>

namespace hawser::ps {

inline constexpr size_t kPage = size_t{4} << 10;
inline constexpr size_t kHugePage = size_t{2} << 20;

// Maps zeroed memory at a multiple of kHugePage, in huge pages if the system
// has them. `bytes` is a multiple of kPage. Null: the system has no more
// memory. To be returned by munmap.
std::byte* MapHugePages(size_t bytes);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_HUGE_PAGES_H_
