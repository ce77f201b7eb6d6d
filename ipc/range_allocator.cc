#include "ipc/range_allocator.h"

#include <iterator>

#include "async/check.h"

namespace hawser::ipc {

RangeAllocator::RangeAllocator(size_t begin, size_t end) {
  HAWSER_CHECK(begin % kAlignment == 0 && end % kAlignment == 0 && begin < end)
      << "no ranges from " << begin << " to " << end;
  free_.emplace(begin, end - begin);
}

std::optional<size_t> RangeAllocator::Allocate(size_t bytes) {
  const size_t wanted = RangeBytes(bytes);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < wanted) continue;
    it = free_.erase(it);
    if (size > wanted) free_.emplace_hint(it, offset + wanted, size - wanted);
    return offset;
  }
  return std::nullopt;
}

void RangeAllocator::Free(size_t offset, size_t bytes) {
  size_t size = RangeBytes(bytes);
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    HAWSER_CHECK(before->first + before->second <= offset) << "freed twice";
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end()) {
    HAWSER_CHECK(offset + size <= after->first) << "freed twice";
    if (offset + size == after->first) {
      size += after->second;
      free_.erase(after);
    }
  }
  free_.emplace(offset, size);
}

}  // namespace hawser::ipc
