#include "tensor/memory/huge_pages.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace hawser::tensor {

std::byte* MapHugePages(size_t bytes) {
  const size_t reserved = bytes + kHugePageBytes;
  if (reserved < bytes) return nullptr;
  void* const mapped = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t skipped =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes) %
      kHugePageBytes;
  if (skipped > 0) munmap(begin, skipped);
  begin += skipped;
  if (skipped < kHugePageBytes) munmap(begin + bytes, kHugePageBytes - skipped);
  // Without huge pages in the system the memory works as well, more slowly.
  madvise(begin, bytes, MADV_HUGEPAGE);
  return begin;
}

}  // namespace hawser::tensor
