// Rows in memory, by key.

#ifndef HAWSER_PS_STORAGE_MEMORY_ROW_STORE_H_
#define HAWSER_PS_STORAGE_MEMORY_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "ps/storage/memory/key_map.h"
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/memory/row_copy.h"
#include "ps/storage/memory/row_slab.h"
#include "ps/storage/memory/slot_set.h"
#include "ps/storage/table_format.h"

namespace hawser::ps {

// A map from keys to rows of a TableFormat, which do not move. `hash` is
// Hash(key). Thread-compatible.
class RowStore {
 public:
  // A key and its row.
  struct Entry {
    uint64_t key;
    std::byte* row;
    uint32_t slot;
  };

  explicit RowStore(std::shared_ptr<const TableFormat> format);

  // Uniform for the keys of any shards.
  uint64_t Hash(uint64_t key) const { return slots_.Hash(key); }
  // Loads to the cache where FindAtHome looks. Inlined: see prefetch.h.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(uint64_t hash) const {
    slots_.Prefetch(hash);
  }
  // Null: there is none.
  std::byte* Find(uint64_t key, uint64_t hash) const {
    return RowOrNull(slots_.Find(key, hash));
  }
  // The same for a caller that changes the row.
  std::byte* FindToChange(uint64_t key, uint64_t hash) {
    return Change(slots_.Find(key, hash));
  }
  // Find, or FindToChange if the caller `changes` the row, in two parts, for
  // callers that look for many rows: where Prefetch loads; and then, for keys
  // for which that returns null, where PrefetchElsewhere loads.
  std::byte* FindAtHome(uint64_t key, uint64_t hash, bool changes) {
    const uint32_t slot = slots_.FindAtHome(key, hash);
    return changes ? Change(slot) : RowOrNull(slot);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchElsewhere(uint64_t hash) const {
    slots_.PrefetchElsewhere(hash);
  }
  std::byte* FindElsewhere(uint64_t key, uint64_t hash, bool changes) {
    const uint32_t slot = slots_.FindElsewhere(key, hash);
    return changes ? Change(slot) : RowOrNull(slot);
  }
  // Before the row of an entry is changed.
  void MarkChanged(const Entry& entry) { Change(entry.slot); }

  // Makes room for `count` more rows. kResourceExhausted: out of memory; names
  // the remedy.
  absl::Status Reserve(size_t count);
  // Creates a row, for which there must be room, with its initial content, or
  // with unspecified content.
  std::byte* Create(uint64_t key, uint64_t hash);
  std::byte* Insert(uint64_t key, uint64_t hash);
  // Removes the row of a key, which must have one.
  void Erase(uint64_t key, uint64_t hash);
  // The same for a row that exists elsewhere afterwards; returns its
  // RowChanges::GenerationOf. Load is Insert for such a row.
  uint32_t Unload(uint64_t key, uint64_t hash);
  std::byte* Load(uint64_t key, uint64_t hash, uint32_t generation);

  size_t size() const { return slots_.size(); }
  // Memory of rows and keys.
  size_t bytes() const {
    return slots_.bytes() + slab_.bytes() + changes_.bytes();
  }

  // Calls visit(key, row) for each row. `visit` must not change the map.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    slots_.ForEach(
        [&](uint64_t key, uint32_t slot) { visit(key, slab_.Row(slot)); });
  }
  // Same, a row at a time: positions 0 to num_positions() - 1, of which some
  // are empty. Rows change their positions when Reserve needs memory.
  size_t num_positions() const { return slots_.num_entries(); }
  std::optional<Entry> At(size_t position) const {
    const auto [key, slot] = slots_.EntryAt(position);
    if (slot == KeyMap::kNoSlot) return std::nullopt;
    return Entry{key, slab_.Row(slot), slot};
  }

  // Begins to copy the rows as they are now: all, or those in `slots` if that
  // is not null. One copy at a time, which must live until ContinueCopy returns
  // false.
  void BeginCopy(const SlotSet* slots, RowCopy& copy);
  // Copies some more of them. Rows may change before the next call. False: all
  // are copied.
  bool ContinueCopy();
  // Slots of all rows are below it.
  size_t num_slots() const { return slab_.end(); }

  // Rows that were created, changed and removed since snapshots.
  const RowChanges& changes() const { return changes_; }
  // Begins with those since `snapshot`, which has the rows as they are now.
  void Cut(uint64_t snapshot) { changes_.Cut(snapshot, num_slots()); }
  std::optional<ChangesSince> Since(uint64_t snapshot) {
    return changes_.Since(snapshot);
  }

 private:
  std::byte* RowOrNull(uint32_t slot) const {
    return slot == KeyMap::kNoSlot ? nullptr : slab_.Row(slot);
  }
  std::byte* Change(uint32_t slot) {
    if (slot == KeyMap::kNoSlot) return nullptr;
    changes_.Change(slot);
    std::byte* const row = slab_.Row(slot);
    if (copy_ != nullptr) copy_->Save(slot, row);
    return row;
  }
  // A slot for a row of `key`, which is put into the map.
  uint32_t Allocate(uint64_t key, uint64_t hash);

  const std::shared_ptr<const TableFormat> format_;
  KeyMap slots_;
  RowSlab slab_;
  RowChanges changes_;
  // That is being made; null if there is none.
  RowCopy* copy_ = nullptr;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_ROW_STORE_H_
