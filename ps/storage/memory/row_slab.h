// Memory for the rows of a partition.

#ifndef HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_
#define HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {

// Rows of equal size in chunks of about 64 KiB, numbered by slots. Rows do not
// move, and lie side by side without padding. Thread-compatible.
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
    // Unchecked: this is the innermost part of a look-up.
    return chunks_.data()[slot >> chunk_shift_] +
           size_t{slot & ((uint32_t{1} << chunk_shift_) - 1)} * row_bytes_;
  }

  // Number of slots that were ever allocated: all slots are below it.
  uint32_t end() const { return next_; }

  size_t row_bytes() const { return row_bytes_; }
  // Memory of the chunks, and of the list of free slots.
  size_t bytes() const;

 private:
  absl::Status AddChunk();

  const size_t row_bytes_;
  uint32_t chunk_shift_ = 0;
  std::vector<std::byte*> chunks_;
  std::vector<MemoryBlock> blocks_;
  // Bytes of the last block that belong to chunks.
  size_t used_ = 0;
  // Slots from here on were never allocated.
  uint32_t next_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_ROW_SLAB_H_
