// Memory for the rows of a partition.

#ifndef HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_
#define HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {

// Rows of equal size, numbered by slots, which do not move, and lie side by
// side without padding. The first ones are in small chunks, of about 64 KiB,
// and those after 512 KiB in large ones, of about that size: small tables take
// little memory, and the addresses of the chunks of large ones stay in the
// first-level cache. Thread-compatible.
class RowSlab {
 public:
  // `row_bytes` must be a multiple of 4, and positive.
  explicit RowSlab(size_t row_bytes);

  // Makes room for `count` more rows. kResourceExhausted: out of memory, or
  // there would be more than 2^32 - 2 rows.
  absl::Status Reserve(size_t count);

  // Returns the slot of a row with unspecified content. There must be room, by
  // Reserve.
  uint32_t Allocate();
  // Makes the slot available to Allocate.
  void Free(uint32_t slot) { free_.push_back(slot); }

  std::byte* Row(uint32_t slot) const {
    // Unchecked: this is the innermost part of a look-up. A branch: it is
    // predicted, and the rows of large tables cost no more.
    return slot >= num_small_ ? In(large_, large_shift_, slot)
                              : In(small_, small_shift_, slot);
  }

  // Number of slots that were ever allocated: all slots are below it.
  uint32_t end() const { return next_; }

  size_t row_bytes() const { return row_bytes_; }
  // Memory of the chunks, and of the list of free slots.
  size_t bytes() const;

 private:
  std::byte* In(const std::vector<std::byte*>& chunks, uint32_t shift,
                uint32_t slot) const {
    return chunks.data()[slot >> shift] +
           size_t{slot & ((uint32_t{1} << shift) - 1)} * row_bytes_;
  }
  absl::Status AddChunk();

  const size_t row_bytes_;
  // Logarithms of the rows in small and in large chunks.
  const uint32_t small_shift_;
  const uint32_t large_shift_;
  // The slots below are in small chunks, which hold as many rows as a large
  // one.
  const uint32_t num_small_;
  std::vector<std::byte*> small_;
  // The first one is null.
  std::vector<std::byte*> large_{nullptr};
  // Rows of all chunks.
  size_t capacity_ = 0;
  std::vector<MemoryBlock> blocks_;
  // Bytes of the last block that belong to chunks.
  size_t used_ = 0;
  // Slots from here on were never allocated.
  uint32_t next_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_
