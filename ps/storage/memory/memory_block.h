// Zeroed memory in huge pages.

#ifndef HAWSER_PS_STORAGE_MEMORY_MEMORY_BLOCK_H_
#define HAWSER_PS_STORAGE_MEMORY_MEMORY_BLOCK_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace hawser::ps {

// Memory for data that is accessed at random: a page table with huge pages fits
// the processor's caches. A block of less than 128 KiB takes physical memory
// only where it is written, a larger one in huge pages.
//
// Thread-compatible.
class MemoryBlock {
 public:
  // Zeroed, aligned to a page, and to 2 MiB from that size on.
  // kResourceExhausted: the system has no more memory.
  static absl::StatusOr<MemoryBlock> Allocate(size_t bytes);

  MemoryBlock() = default;
  MemoryBlock(MemoryBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryBlock();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MemoryBlock(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_MEMORY_BLOCK_H_
