#include "ps/storage/memory/huge_pages.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace hawser::ps {

std::byte* MapHugePages(size_t bytes) {
  const size_t reserved = bytes + kHugePage;
  if (reserved < bytes) return nullptr;
  void* const mapped = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t skipped =
      (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (skipped > 0) munmap(begin, skipped);
  begin += skipped;
  if (skipped < kHugePage) munmap(begin + bytes, kHugePage - skipped);
  // Without huge pages in the system the memory works as well, more slowly.
  madvise(begin, bytes, MADV_HUGEPAGE);
  return begin;
}

}  // namespace hawser::ps
