// Memory blocks that share huge pages.

#ifndef HAWSER_PS_STORAGE_MEMORY_PAGE_ARENA_H_
#define HAWSER_PS_STORAGE_MEMORY_PAGE_ARENA_H_

#include <cstddef>
#include <map>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::ps {

// Blocks that are smaller than a huge page, side by side in regions of them.
// The tables of a server are divided into many partitions: each of them alone
// would be in pages of 4 KiB, of which a processor remembers too few.
//
// The lowest free memory that fits is used first, and a region without blocks
// is returned to the system.
//
// Thread-safe.
class PageArena {
 public:
  static constexpr size_t kRegion = size_t{32} << 20;

  // The one of the process. It is never destroyed.
  static PageArena& OfProcess();

  PageArena() = default;
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Zeroed memory, aligned to tensor::kPageBytes. `bytes` is a multiple of
  // tensor::kPageBytes, and at most kRegion. Null: the system has no more
  // memory.
  std::byte* Allocate(size_t bytes);
  // `memory` is of Allocate(bytes).
  void Free(std::byte* memory, size_t bytes);

  // Memory of the regions.
  size_t mapped_bytes() const;

 private:
  struct Region {
    // From here on, no block has ever been: the memory is zeroed.
    std::byte* fresh;
    // The ranges between blocks, before `fresh`: their sizes by their begins.
    // No two are adjacent.
    std::map<std::byte*, size_t> free;
  };
  struct Range {
    std::byte* begin = nullptr;
    bool zeroed = false;
  };

  // Takes a range from a region, or from a new one. Null: the system has no
  // more memory.
  Range Take(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable async::Mutex mutex_;
  // By their begins.
  std::map<std::byte*, Region> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_PAGE_ARENA_H_
