#include "ps/storage/memory/memory_block.h"

#include <sys/mman.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ps/storage/memory/page_arena.h"
#include "tensor/memory/huge_pages.h"

namespace hawser::ps {
namespace {

// Smaller blocks are in pages of their own: tables of few rows are divided into
// as many partitions as large ones, and a block takes memory only where there
// are rows.
constexpr size_t kMinShared = size_t{128} << 10;

bool IsShared(size_t bytes) {
  return bytes >= kMinShared && bytes < tensor::kHugePageBytes;
}

std::byte* Map(size_t bytes) {
  if (IsShared(bytes)) return PageArena::OfProcess().Allocate(bytes);
  if (bytes >= tensor::kHugePageBytes) return tensor::MapHugePages(bytes);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

absl::StatusOr<MemoryBlock> MemoryBlock::Allocate(size_t bytes) {
  if (bytes == 0) return MemoryBlock();
  const size_t size = (bytes + tensor::kPageBytes - 1) / tensor::kPageBytes *
                      tensor::kPageBytes;
  std::byte* const data = size < bytes ? nullptr : Map(size);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: ", bytes, " bytes for rows of a table"));
  }
  return MemoryBlock(data, size);
}

MemoryBlock::~MemoryBlock() {
  if (data_ == nullptr) return;
  if (IsShared(bytes_)) {
    PageArena::OfProcess().Free(data_, bytes_);
  } else {
    munmap(data_, bytes_);
  }
}

}  // namespace hawser::ps
