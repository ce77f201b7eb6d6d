#include "ps/storage/memory/page_arena.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>

#include "async/check.h"
#include "async/mutex.h"
#include "tensor/memory/huge_pages.h"

namespace hawser::ps {

PageArena& PageArena::OfProcess() {
  static PageArena& arena = *new PageArena();
  return arena;
}

std::byte* PageArena::Allocate(size_t bytes) {
  HAWSER_CHECK(bytes > 0 && bytes % tensor::kPageBytes == 0 && bytes <= kRegion)
      << bytes;
  Range range;
  {
    const async::MutexLock lock(&mutex_);
    range = Take(bytes);
  }
  if (range.begin != nullptr && !range.zeroed) {
    std::memset(range.begin, 0, bytes);
  }
  return range.begin;
}

PageArena::Range PageArena::Take(size_t bytes) {
  for (auto& [begin, region] : regions_) {
    for (auto it = region.free.begin(); it != region.free.end(); ++it) {
      const auto [free, size] = *it;
      if (size < bytes) continue;
      region.free.erase(it);
      if (size > bytes) region.free.emplace(free + bytes, size - bytes);
      return {free, /*zeroed=*/false};
    }
    std::byte* const fresh = region.fresh;
    if (static_cast<size_t>(begin + kRegion - fresh) < bytes) continue;
    region.fresh += bytes;
    return {fresh, /*zeroed=*/true};
  }
  std::byte* const begin = tensor::MapHugePages(kRegion);
  if (begin == nullptr) return {};
  regions_[begin].fresh = begin + bytes;
  return {begin, /*zeroed=*/true};
}

void PageArena::Free(std::byte* memory, size_t bytes) {
  const async::MutexLock lock(&mutex_);
  auto of_memory = regions_.upper_bound(memory);
  HAWSER_CHECK(of_memory != regions_.begin()) << "a block of this arena";
  --of_memory;
  Region& region = of_memory->second;
  const auto next = region.free.lower_bound(memory);
  if (next != region.free.end() && next->first == memory + bytes) {
    bytes += next->second;
    region.free.erase(next);
  }
  const auto after = region.free.lower_bound(memory);
  if (after != region.free.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == memory) {
      memory = previous->first;
      bytes += previous->second;
    }
  }
  region.free[memory] = bytes;
  std::byte* const begin = of_memory->first;
  if (memory == begin && memory + bytes == region.fresh) {
    munmap(begin, kRegion);
    regions_.erase(of_memory);
  }
}

size_t PageArena::mapped_bytes() const {
  const async::MutexLock lock(&mutex_);
  return regions_.size() * kRegion;
}

}  // namespace hawser::ps
