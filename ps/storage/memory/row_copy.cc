#include "ps/storage/memory/row_copy.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ps/storage/memory/row_slab.h"
#include "ps/storage/memory/slot_set.h"

namespace hawser::ps {

void RowCopy::Reserve(size_t num_slots, size_t row_bytes) {
  const size_t bytes = num_slots * (sizeof(uint64_t) + row_bytes);
  if (rows_.size() < bytes) rows_.resize(bytes);
  if (keys_.size() < num_slots) keys_.resize(num_slots);
}

void RowCopy::Begin(size_t num_slots, size_t row_bytes) {
  Reserve(num_slots, row_bytes);
  entry_bytes_ = sizeof(uint64_t) + row_bytes;
  num_rows_ = 0;
  added_.Reset(num_slots);
}

void RowCopy::Start() {
  pending_ = added_;
  before_.clear();
  for (size_t i = 0; i < added_.num_words(); ++i) {
    before_.push_back(static_cast<uint32_t>(num_rows_));
    num_rows_ += static_cast<size_t>(std::popcount(added_.word(i)));
  }
  next_word_ = 0;
}

bool RowCopy::Continue(const RowSlab& slab) {
  size_t bytes = 0;
  for (; next_word_ < pending_.num_words(); ++next_word_) {
    for (uint64_t slots = pending_.word(next_word_); slots != 0;
         slots &= slots - 1) {
      if (bytes >= kStepBytes) return true;
      const auto slot = static_cast<uint32_t>(next_word_ * SlotSet::kWordSlots +
                                              std::countr_zero(slots));
      CopyRow(slot, slab.Row(slot));
      bytes += entry_bytes_;
    }
  }
  return false;
}

void RowCopy::CopyRow(uint32_t slot, const std::byte* row) {
  const size_t word = slot / SlotSet::kWordSlots;
  const uint64_t lower =
      (uint64_t{1} << slot % SlotSet::kWordSlots) - uint64_t{1};
  const size_t index =
      before_[word] +
      static_cast<size_t>(std::popcount(added_.word(word) & lower));
  std::byte* const entry = &rows_[index * entry_bytes_];
  std::memcpy(entry, &keys_[slot], sizeof(uint64_t));
  std::memcpy(entry + sizeof(uint64_t), row, entry_bytes_ - sizeof(uint64_t));
  pending_.Erase(slot);
}

}  // namespace hawser::ps
