// Changes of rows in memory since the last snapshots.

#ifndef HAWSER_PS_STORAGE_MEMORY_ROW_CHANGES_H_
#define HAWSER_PS_STORAGE_MEMORY_ROW_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ps/storage/memory/slot_set.h"

namespace hawser::ps {

// The changes of rows since a snapshot.
struct ChangesSince {
  // Some may be free.
  SlotSet changed;
  // Keys that had a row then, or later, and lost it. Some may have one again.
  std::vector<uint64_t> removed;
  // Rows outside of memory have changed if GenerationOf was at least this when
  // they left it.
  uint32_t generation = 0;
};

// Remembers for each of the last kMaxCuts snapshots, here called cuts, which
// rows have changed since: in a bit per row between each two of them. Before
// the first cut nothing is remembered, and nothing costs time.
//
// A cut does not say whether its snapshot is complete on all servers. The one
// on which an increment was based last therefore stays while others are
// forgotten, so that saves that fail cost no more than some rows which are
// written again.
//
// Thread-compatible.
class RowChanges {
 public:
  static constexpr size_t kMaxCuts = 4;

  // Whether keys that lose their rows are remembered, for a table whose rows
  // are removed. A quarter of the rows, and kMinRemoved, may be: above, all
  // cuts are forgotten.
  explicit RowChanges(bool remembers_removed)
      : remembers_removed_(remembers_removed) {}

  static constexpr size_t kMinRemoved = 4096;

  // The row in `slot` was created, also in place of another.
  void Create(uint32_t slot) {
    if (active()) Created(slot);
  }
  void Change(uint32_t slot) {
    if (active()) cuts_.back().changed.Insert(slot);
  }
  // The row of `key` in `slot` was removed.
  void Remove(uint64_t key, uint32_t slot) {
    if (active() && remembers_removed_) Removed(key, slot);
  }

  // A row that comes back to memory, which left it in `generation`.
  void Load(uint32_t slot, uint32_t generation);
  // When a row in memory changed last: the number of the cut before it, or 0 if
  // it did not since the first one.
  uint32_t GenerationOf(uint32_t slot) const;

  // The number of the last cut.
  uint32_t generation() const { return generation_; }

  // A snapshot has the rows of all slots below `num_slots` as they are now. If
  // it is saved again, its first cut stays.
  void Cut(uint64_t snapshot, size_t num_slots);
  bool Knows(uint64_t snapshot) const;
  // Nullopt: the snapshot is not known.
  std::optional<ChangesSince> Since(uint64_t snapshot);

  size_t bytes() const;

 private:
  // From one cut to the next.
  struct Interval {
    uint64_t snapshot = 0;
    uint32_t generation = 0;
    SlotSet changed;
    // Rows that have been created since the cut; empty unless removed keys are
    // remembered.
    SlotSet created;
    std::vector<uint64_t> removed;
  };

  bool active() const { return !cuts_.empty(); }
  void Created(uint32_t slot);
  void Removed(uint64_t key, uint32_t slot);
  // Forgets one cut that is not the last base.
  void Forget();

  const bool remembers_removed_;
  // The oldest is the first.
  std::vector<Interval> cuts_;
  uint32_t generation_ = 0;
  // The snapshot on which an increment was based last.
  uint64_t last_base_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_ROW_CHANGES_H_
