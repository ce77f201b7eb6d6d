#include "ps/storage/memory/memory_block.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::ps {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

absl::StatusOr<MemoryBlock> MemoryBlock::Allocate(size_t bytes) {
  if (bytes == 0) return MemoryBlock();
  const size_t size = RoundUp(bytes, kPage);
  const bool huge = size >= kHugePage;
  const size_t reserved = huge ? size + kHugePage : size;
  void* const mapped = size < bytes || reserved < size
                           ? MAP_FAILED
                           : mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: ", bytes, " bytes for rows of a table"));
  }
  std::byte* begin = static_cast<std::byte*>(mapped);
  if (huge) {
    const size_t skipped =
        RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePage) -
        reinterpret_cast<uintptr_t>(begin);
    if (skipped > 0) munmap(begin, skipped);
    begin += skipped;
    if (skipped < kHugePage) munmap(begin + size, kHugePage - skipped);
    // Without huge pages in the system the memory works as well, more slowly.
    madvise(begin, size, MADV_HUGEPAGE);
  }
  return MemoryBlock(begin, size);
}

MemoryBlock::~MemoryBlock() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace hawser::ps
