// A copy of the rows of a store, which change meanwhile.

#ifndef HAWSER_PS_STORAGE_MEMORY_ROW_COPY_H_
#define HAWSER_PS_STORAGE_MEMORY_ROW_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ps/storage/memory/row_slab.h"
#include "ps/storage/memory/slot_set.h"

namespace hawser::ps {

// Rows as they were at one moment, copied in steps: a row that changes before
// its turn is copied first. Use one again for several copies: its memory is
// then there already.
//
// Steps: Begin, Add for each row and Start at that moment; then Continue until
// all rows are copied, and Save before each change. Thread-compatible.
class RowCopy {
 public:
  // Makes room for the rows of `num_slots` slots, of `row_bytes` each.
  void Reserve(size_t num_slots, size_t row_bytes);

  // Forgets all rows. Slots of rows to copy are below `num_slots`.
  void Begin(size_t num_slots, size_t row_bytes);
  void Add(uint64_t key, uint32_t slot) {
    keys_[slot] = key;
    added_.Insert(slot);
  }
  // After the last row was added.
  void Start();

  // The row in `slot` is about to change, or has been removed and its slot is
  // used again.
  void Save(uint32_t slot, const std::byte* row) {
    if (pending_.Contains(slot)) CopyRow(slot, row);
  }
  // Copies some more rows, about kStepBytes. False: all are copied.
  bool Continue(const RowSlab& slab);

  // For each row the key in 8 bytes, then the row, one after the other.
  std::span<const std::byte> rows() const {
    return {rows_.data(), num_rows_ * entry_bytes_};
  }
  // Calls visit(key, row) for each of them.
  template <class Visit>
  void ForEach(const Visit& visit) const;
  // Calls keep(key, row) for each of them, which may change the row, and drops
  // those for which it returns false.
  template <class Keep>
  void Filter(const Keep& keep);

 private:
  // The cores of a machine copy this in some 15 us.
  static constexpr size_t kStepBytes = size_t{64} << 10;

  void CopyRow(uint32_t slot, const std::byte* row);

  size_t entry_bytes_ = 0;
  size_t num_rows_ = 0;
  std::vector<std::byte> rows_;
  // By slot.
  std::vector<uint64_t> keys_;
  SlotSet added_;
  // Those of added_ that are not copied yet.
  SlotSet pending_;
  // Of each word of added_: the elements in the words before it.
  std::vector<uint32_t> before_;
  // The words of pending_ before this one are empty.
  size_t next_word_ = 0;
};

template <class Visit>
void RowCopy::ForEach(const Visit& visit) const {
  for (size_t i = 0; i < num_rows_; ++i) {
    const std::byte* const entry = &rows_[i * entry_bytes_];
    uint64_t key = 0;
    std::memcpy(&key, entry, sizeof(key));
    visit(key, entry + sizeof(key));
  }
}

template <class Keep>
void RowCopy::Filter(const Keep& keep) {
  size_t kept = 0;
  for (size_t i = 0; i < num_rows_; ++i) {
    std::byte* const entry = &rows_[i * entry_bytes_];
    uint64_t key = 0;
    std::memcpy(&key, entry, sizeof(key));
    if (!keep(key, entry + sizeof(key))) continue;
    if (kept < i) std::memcpy(&rows_[kept * entry_bytes_], entry, entry_bytes_);
    ++kept;
  }
  num_rows_ = kept;
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_ROW_COPY_H_
