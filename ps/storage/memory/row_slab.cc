#include "ps/storage/memory/row_slab.h"

#include <algorithm>
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

constexpr size_t kChunkBytes = size_t{64} << 10;
// Blocks double from the first size to the second.
constexpr size_t kFirstBlockBytes = kChunkBytes;
constexpr size_t kMaxBlockBytes = size_t{32} << 20;

}  // namespace

RowSlab::RowSlab(size_t row_bytes) : row_bytes_(row_bytes) {
  while ((row_bytes_ << (chunk_shift_ + 1)) <= kChunkBytes) ++chunk_shift_;
}

absl::Status RowSlab::Reserve(size_t count) {
  if (count <= free_.size()) return absl::OkStatus();
  const size_t needed = next_ + (count - free_.size());
  // The map of keys reserves the last number.
  if (needed > UINT32_MAX - 1) {
    return absl::ResourceExhaustedError(
        "a partition of a table is full: use more servers");
  }
  while ((chunks_.size() << chunk_shift_) < needed) RETURN_IF_ERROR(AddChunk());
  return absl::OkStatus();
}

uint32_t RowSlab::Allocate() {
  if (!free_.empty()) {
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  HAWSER_CHECK((next_ >> chunk_shift_) < chunks_.size()) << "there is room";
  return next_++;
}

absl::Status RowSlab::AddChunk() {
  const size_t chunk_bytes = row_bytes_ << chunk_shift_;
  if (blocks_.empty() || blocks_.back().bytes() - used_ < chunk_bytes) {
    const size_t wanted =
        blocks_.empty() ? kFirstBlockBytes
                        : std::min(2 * blocks_.back().bytes(), kMaxBlockBytes);
    ASSIGN_OR_RETURN(MemoryBlock block,
                     MemoryBlock::Allocate(std::max(wanted, chunk_bytes)));
    blocks_.push_back(std::move(block));
    used_ = 0;
  }
  chunks_.push_back(blocks_.back().data() + used_);
  used_ += chunk_bytes;
  return absl::OkStatus();
}

size_t RowSlab::bytes() const {
  return chunks_.size() * (row_bytes_ << chunk_shift_) +
         free_.capacity() * sizeof(uint32_t);
}

}  // namespace hawser::ps
