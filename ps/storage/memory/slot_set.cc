#include "ps/storage/memory/slot_set.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hawser::ps {

void SlotSet::InsertAll(const SlotSet& other) {
  Grow(other.num_slots());
  for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

void SlotSet::Grow(size_t num_slots) {
  const size_t words = (num_slots + kWordSlots - 1) / kWordSlots;
  if (words > words_.size()) words_.resize(words);
}

void SlotSet::Reset(size_t num_slots) {
  words_.assign((num_slots + kWordSlots - 1) / kWordSlots, 0);
}

size_t SlotSet::size() const {
  size_t size = 0;
  for (const uint64_t word : words_) {
    size += static_cast<size_t>(std::popcount(word));
  }
  return size;
}

}  // namespace hawser::ps
