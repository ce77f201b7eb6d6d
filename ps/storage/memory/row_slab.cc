#include "ps/storage/memory/row_slab.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {
namespace {

constexpr size_t kSmallChunkBytes = size_t{64} << 10;
constexpr size_t kLargeChunkBytes = size_t{512} << 10;
// Blocks double from the first size to the second.
constexpr size_t kFirstBlockBytes = kSmallChunkBytes;
constexpr size_t kMaxBlockBytes = size_t{32} << 20;

// The logarithm of a number of rows that take at most `bytes`; at least 0.
uint32_t ShiftFor(size_t row_bytes, size_t bytes) {
  return static_cast<uint32_t>(
      std::bit_width(std::max(bytes / row_bytes, size_t{1})) - 1);
}

}  // namespace

RowSlab::RowSlab(size_t row_bytes)
    : row_bytes_(row_bytes),
      small_shift_(ShiftFor(row_bytes, kSmallChunkBytes)),
      large_shift_(ShiftFor(row_bytes, kLargeChunkBytes)),
      num_small_(uint32_t{1} << large_shift_) {}

absl::Status RowSlab::Reserve(size_t count) {
  if (count <= free_.size()) return absl::OkStatus();
  const size_t needed = next_ + (count - free_.size());
  // The map of keys reserves the last number.
  if (needed > UINT32_MAX - 1) {
    return absl::ResourceExhaustedError(
        "a partition of a table is full: use more servers");
  }
  while (capacity_ < needed) RETURN_IF_ERROR(AddChunk());
  return absl::OkStatus();
}

uint32_t RowSlab::Allocate() {
  if (!free_.empty()) {
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  HAWSER_CHECK(next_ < capacity_) << "there is room";
  return next_++;
}

absl::Status RowSlab::AddChunk() {
  const bool is_small = capacity_ < num_small_;
  const size_t rows = size_t{1} << (is_small ? small_shift_ : large_shift_);
  const size_t chunk_bytes = rows * row_bytes_;
  if (blocks_.empty() || blocks_.back().bytes() - used_ < chunk_bytes) {
    const size_t wanted =
        blocks_.empty() ? kFirstBlockBytes
                        : std::min(2 * blocks_.back().bytes(), kMaxBlockBytes);
    ASSIGN_OR_RETURN(MemoryBlock block,
                     MemoryBlock::Allocate(std::max(wanted, chunk_bytes)));
    blocks_.push_back(std::move(block));
    used_ = 0;
  }
  (is_small ? small_ : large_).push_back(blocks_.back().data() + used_);
  used_ += chunk_bytes;
  capacity_ += rows;
  return absl::OkStatus();
}

size_t RowSlab::bytes() const {
  return capacity_ * row_bytes_ + free_.capacity() * sizeof(uint32_t);
}

}  // namespace hawser::ps
