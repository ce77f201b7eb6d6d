#include "ps/storage/retention/eviction_clock.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ps/storage/key_hash.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"

namespace hawser::ps {
namespace {

// Positions of the store that are loaded ahead.
constexpr size_t kAhead = 8;

}  // namespace

std::optional<RowStore::Entry> NextEntry(const RowStore& rows, size_t row_bytes,
                                         size_t& position) {
  const size_t end = rows.num_positions();
  if (position >= end) position = 0;
  const auto ahead = rows.At((position + kAhead) % end);
  // The use is the last part of a row.
  if (ahead.has_value()) Prefetch(ahead->row + row_bytes - 1, 1);
  return rows.At(position++);
}

std::optional<RowStore::Entry> EvictionClock::Choose(RowStore& rows,
                                                     int64_t now) {
  const RowLayout& layout = format_->layout();
  std::optional<RowStore::Entry> oldest;
  int64_t oldest_age = -1;
  size_t considered = 0;
  const size_t positions = rows.num_positions();
  for (size_t i = 0; i < positions && considered < kMaxConsidered; ++i) {
    const auto entry = NextEntry(rows, layout.bytes(), hand_);
    if (!entry.has_value() || IsInBatch(entry->key)) continue;
    const RowUse use = layout.use(entry->row);
    if (use.pushes() < RowUse::kManyPushes ||
        format_->HasExpired(entry->row, now)) {
      return entry;
    }
    if (uses_ == Uses::kState) rows.MarkChanged(*entry);
    layout.set_use(entry->row, use.WithPushes(1));
    ++considered;
    if (use.Age(now) > oldest_age) {
      oldest_age = use.Age(now);
      oldest = entry;
    }
  }
  return oldest;
}

bool EvictionClock::IsInBatch(uint64_t key) {
  if (hashes_.empty()) {
    for (size_t i = 0; i < batch_.count; ++i) {
      hashes_.push_back(HashKey(batch_.key(i)));
    }
    // Those of requests are already.
    if (!std::is_sorted(hashes_.begin(), hashes_.end())) {
      std::sort(hashes_.begin(), hashes_.end());
    }
  }
  return std::binary_search(hashes_.begin(), hashes_.end(), HashKey(key));
}

}  // namespace hawser::ps
