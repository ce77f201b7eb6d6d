#include "ps/storage/memory/row_changes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ps/storage/memory/slot_set.h"

namespace hawser::ps {

void RowChanges::Created(uint32_t slot) {
  Interval& interval = cuts_.back();
  interval.changed.Grow(size_t{slot} + 1);
  interval.changed.Insert(slot);
  if (!remembers_removed_) return;
  interval.created.Grow(size_t{slot} + 1);
  interval.created.Insert(slot);
}

void RowChanges::Removed(uint64_t key, uint32_t slot) {
  Interval& interval = cuts_.back();
  // The snapshot does not have it.
  if (interval.created.Contains(slot)) return;
  interval.removed.push_back(key);
  if (interval.removed.size() >
      std::max(kMinRemoved, interval.changed.num_slots() / 4)) {
    cuts_.clear();
  }
}

void RowChanges::Load(uint32_t slot, uint32_t generation) {
  if (!active()) return;
  for (Interval& interval : cuts_) {
    if (slot < interval.changed.num_slots()) interval.changed.Erase(slot);
  }
  // Since a cut a row has changed if it did after that cut or a later one.
  for (size_t i = cuts_.size(); i > 0; --i) {
    Interval& interval = cuts_[i - 1];
    if (interval.generation > generation) continue;
    interval.changed.Grow(size_t{slot} + 1);
    interval.changed.Insert(slot);
    break;
  }
  // Change does not check.
  cuts_.back().changed.Grow(size_t{slot} + 1);
}

uint32_t RowChanges::GenerationOf(uint32_t slot) const {
  for (size_t i = cuts_.size(); i > 0; --i) {
    if (cuts_[i - 1].changed.Contains(slot)) return cuts_[i - 1].generation;
  }
  return 0;
}

void RowChanges::Cut(uint64_t snapshot, size_t num_slots) {
  if (Knows(snapshot)) return;
  if (cuts_.size() == kMaxCuts) Forget();
  Interval& interval = cuts_.emplace_back();
  interval.snapshot = snapshot;
  interval.generation = ++generation_;
  interval.changed.Grow(num_slots);
}

void RowChanges::Forget() {
  const size_t forgotten = cuts_[0].snapshot == last_base_ ? 1 : 0;
  if (forgotten > 0) {
    Interval& base = cuts_[0];
    Interval& next = cuts_[1];
    base.changed.InsertAll(next.changed);
    base.created.InsertAll(next.created);
    base.removed.insert(base.removed.end(), next.removed.begin(),
                        next.removed.end());
  }
  cuts_.erase(cuts_.begin() + static_cast<ptrdiff_t>(forgotten));
}

bool RowChanges::Knows(uint64_t snapshot) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Interval& interval) {
    return interval.snapshot == snapshot;
  });
}

std::optional<ChangesSince> RowChanges::Since(uint64_t snapshot) {
  if (!Knows(snapshot)) return std::nullopt;
  ChangesSince changes;
  bool since = false;
  for (const Interval& interval : cuts_) {
    if (interval.snapshot == snapshot) {
      since = true;
      changes.generation = interval.generation;
    }
    if (!since) continue;
    changes.changed.InsertAll(interval.changed);
    changes.removed.insert(changes.removed.end(), interval.removed.begin(),
                           interval.removed.end());
  }
  std::sort(changes.removed.begin(), changes.removed.end());
  changes.removed.erase(
      std::unique(changes.removed.begin(), changes.removed.end()),
      changes.removed.end());
  last_base_ = snapshot;
  return changes;
}

size_t RowChanges::bytes() const {
  size_t bytes = 0;
  for (const Interval& interval : cuts_) {
    bytes += interval.changed.bytes() + interval.created.bytes() +
             interval.removed.capacity() * sizeof(uint64_t);
  }
  return bytes;
}

}  // namespace hawser::ps
