// Allocation of ranges of a memory block that its user addresses by offset.

#ifndef HAWSER_IPC_RANGE_ALLOCATOR_H_
#define HAWSER_IPC_RANGE_ALLOCATOR_H_

#include <cstddef>
#include <map>
#include <optional>

namespace hawser::ipc {

// Keeps its records outside of the block, which another process may write.
// Takes the first range that fits, so that the memory used last, which the
// caches have, is used again. Not thread-safe.
class RangeAllocator {
 public:
  // Ranges begin at multiples of it.
  static constexpr size_t kAlignment = 64;

  // Bytes of the range of a number of bytes.
  static constexpr size_t RangeBytes(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Of the offsets from `begin` to before `end`, multiples of kAlignment.
  RangeAllocator(size_t begin, size_t end);

  // Returns the offset of `bytes` bytes, at least 1; nullopt if no range fits.
  std::optional<size_t> Allocate(size_t bytes);
  // Of a range that Allocate returned for as many bytes.
  void Free(size_t offset, size_t bytes);

 private:
  // Free ranges by offset; no two are adjacent.
  std::map<size_t, size_t> free_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_RANGE_ALLOCATOR_H_
