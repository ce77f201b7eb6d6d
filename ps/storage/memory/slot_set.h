// Sets of rows, by their slots.

#ifndef HAWSER_PS_STORAGE_MEMORY_SLOT_SET_H_
#define HAWSER_PS_STORAGE_MEMORY_SLOT_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::ps {

// The slots of rows, as bits. Thread-compatible.
class SlotSet {
 public:
  static constexpr size_t kWordSlots = 64;

  bool Contains(uint32_t slot) const {
    return slot / kWordSlots < words_.size() &&
           (words_[slot / kWordSlots] >> slot % kWordSlots & 1);
  }
  // The slot must be below num_slots().
  void Insert(uint32_t slot) {
    // Unchecked: this is a part of each update of a row.
    words_.data()[slot / kWordSlots] |= uint64_t{1} << slot % kWordSlots;
  }
  void Erase(uint32_t slot) {
    words_[slot / kWordSlots] &= ~(uint64_t{1} << slot % kWordSlots);
  }
  void InsertAll(const SlotSet& other);

  size_t num_slots() const { return words_.size() * kWordSlots; }
  // Makes it at least this.
  void Grow(size_t num_slots);
  // Erases all slots, and sets num_slots(), rounded up.
  void Reset(size_t num_slots);
  // Number of elements.
  size_t size() const;
  size_t bytes() const { return words_.capacity() * sizeof(uint64_t); }

  // The slots kWordSlots * i and following; the lowest bit is the first.
  uint64_t word(size_t i) const { return words_[i]; }
  size_t num_words() const { return words_.size(); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_SLOT_SET_H_
