#include "ps/storage/retention/row_retention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

// Keys whose loads from memory overlap.
constexpr size_t kGroup = 64;
// Positions of the store that are loaded ahead of the hand.
constexpr size_t kAhead = 8;

// The part of `total` for the shards of a partition; at least one.
size_t ShareOf(int64_t total, const TableSpec& spec,
               const PartitionShare& share) {
  const double part = static_cast<double>(share.num_shards) /
                      static_cast<double>(spec.num_shards);
  return std::max(static_cast<size_t>(static_cast<double>(total) * part),
                  size_t{1});
}

size_t Capacity(const TableSpec& spec, const PartitionShare& share) {
  if (spec.retention.max_rows == 0) return 0;
  return std::min(ShareOf(spec.retention.max_rows, spec, share),
                  static_cast<size_t>(share.max_rows));
}

// The entry at `position`, which moves to the next one.
std::optional<RowStore::Entry> Next(const RowStore& rows, size_t row_bytes,
                                    size_t& position) {
  const size_t end = rows.num_positions();
  if (position >= end) position = 0;
  const auto ahead = rows.At((position + kAhead) % end);
  // The use is the last part of a row.
  if (ahead.has_value()) Prefetch(ahead->row + row_bytes - 1, 1);
  return rows.At(position++);
}

}  // namespace

RowRetention::RowRetention(std::shared_ptr<const TableFormat> format,
                           const PartitionShare& share)
    : format_(std::move(format)),
      capacity_(Capacity(format_->spec(), share)),
      max_rows_(static_cast<size_t>(share.max_rows)),
      admission_pushes_(
          static_cast<uint32_t>(format_->spec().retention.admission_pushes)),
      sketch_(ShareOf(format_->spec().retention.admission_window,
                      format_->spec(), share)) {}

void RowRetention::Touch(std::byte* const* rows, size_t count,
                         int64_t now) const {
  const RowLayout& layout = format_->layout();
  for (size_t i = 0; i < count; ++i) {
    layout.set_use(rows[i], layout.use(rows[i]).Pushed(now));
  }
}

void RowRetention::Shift(std::byte* row, int64_t seconds) const {
  const RowLayout& layout = format_->layout();
  layout.set_use(row, layout.use(row).Later(seconds));
}

// Steps:
//   1. Remove some rows that have expired.
//   2. Decide which keys without a row get one. Counts them.
//   3. Make room for them, which may fail.
//   4. Create their rows, each after the eviction of another at the limit.
absl::Status RowRetention::Admit(const KeyBatch& batch, AdmittedRows admits,
                                 int64_t now, RowStore& rows,
                                 AdmittedKeys& admitted) {
  newcomers_.clear();
  dropped_.clear();
  batch_hashes_.clear();
  if (format_->rows_expire()) Sweep(kGroup / 8 + batch.count / 2, now, rows);
  RETURN_IF_ERROR(FindNewcomers(batch, admits, now, rows));
  RETURN_IF_ERROR(Reserve(rows));
  CreateNewcomers(batch, now, rows);
  std::sort(dropped_.begin(), dropped_.end());
  admitted.positions.clear();
  auto next_dropped = dropped_.begin();
  for (size_t i = 0; i < batch.count; ++i) {
    if (next_dropped != dropped_.end() && *next_dropped == i) {
      ++next_dropped;
    } else {
      admitted.positions.push_back(batch.position(i));
    }
  }
  return absl::OkStatus();
}

absl::Status RowRetention::FindNewcomers(const KeyBatch& batch,
                                         AdmittedRows admits, int64_t now,
                                         const RowStore& rows) {
  const bool counts =
      admits == AdmittedRows::kFrequent && admission_pushes_ > 1;
  if (counts) RETURN_IF_ERROR(sketch_.Allocate());
  const size_t row_bytes = format_->layout().bytes();
  uint64_t hashes[kGroup];
  std::byte* found[kGroup];
  for (size_t begin = 0; begin < batch.count; begin += kGroup) {
    const size_t size = std::min(kGroup, batch.count - begin);
    for (size_t i = 0; i < size; ++i) {
      hashes[i] = rows.Hash(batch.key(begin + i));
      rows.Prefetch(hashes[i]);
    }
    for (size_t i = 0; i < size; ++i) {
      found[i] = rows.Find(batch.key(begin + i), hashes[i]);
      if (found[i] != nullptr) Prefetch(found[i] + row_bytes - 1, 1);
    }
    for (size_t i = 0; i < size; ++i) {
      const auto index = static_cast<uint32_t>(begin + i);
      if (found[i] != nullptr && !format_->HasExpired(found[i], now)) {
        if (admits == AdmittedRows::kMissing) dropped_.push_back(index);
      } else if (counts && sketch_.Add(hashes[i]) < admission_pushes_) {
        ++counts_.updates_not_admitted;
        dropped_.push_back(index);
      } else {
        newcomers_.push_back(index);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RowRetention::Reserve(RowStore& rows) const {
  size_t count = newcomers_.size();
  if (capacity_ > 0) {
    count = std::min(count, capacity_ - std::min(capacity_, rows.size()));
  } else if (rows.size() + count > max_rows_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "table \"", format_->spec().name, "\": a partition of this server has ",
        rows.size(), " of at most ", max_rows_,
        " rows: use more servers or a higher limit, or have rows evicted by "
        "Retention::max_rows"));
  }
  return rows.Reserve(count);
}

void RowRetention::CreateNewcomers(const KeyBatch& batch, int64_t now,
                                   RowStore& rows) {
  for (const uint32_t index : newcomers_) {
    const uint64_t key = batch.key(index);
    const uint64_t hash = rows.Hash(key);
    if (const std::byte* row = rows.Find(key, hash); row != nullptr) {
      // Of a key that is repeated in the batch, unless it has expired.
      if (!format_->HasExpired(row, now)) continue;
      Remove(key, rows, counts_.rows_expired);
    }
    if (capacity_ > 0 && rows.size() >= capacity_ && !Evict(batch, now, rows)) {
      ++counts_.updates_without_room;
      dropped_.push_back(index);
      continue;
    }
    format_->layout().set_use(rows.Create(key, hash), RowUse(now, 0));
  }
  // After a restore onto partitions of other sizes.
  for (size_t i = 0;
       i < batch.count && capacity_ > 0 && rows.size() > capacity_; ++i) {
    if (!Evict(batch, now, rows)) break;
  }
}

void RowRetention::Sweep(size_t positions, int64_t now, RowStore& rows) {
  const size_t row_bytes = format_->layout().bytes();
  positions = std::min(positions, rows.num_positions());
  for (size_t i = 0; i < positions; ++i) {
    const auto entry = Next(rows, row_bytes, swept_);
    if (!entry.has_value() || !format_->HasExpired(entry->row, now)) continue;
    Remove(entry->key, rows, counts_.rows_expired);
  }
}

bool RowRetention::Evict(const KeyBatch& batch, int64_t now, RowStore& rows) {
  const RowLayout& layout = format_->layout();
  std::optional<uint64_t> oldest;
  int64_t oldest_age = -1;
  size_t considered = 0;
  const size_t positions = rows.num_positions();
  for (size_t i = 0; i < positions && considered < kMaxConsidered; ++i) {
    const auto entry = Next(rows, layout.bytes(), hand_);
    if (!entry.has_value() || Contains(batch, entry->key)) continue;
    const RowUse use = layout.use(entry->row);
    if (format_->HasExpired(entry->row, now)) {
      Remove(entry->key, rows, counts_.rows_expired);
      return true;
    }
    if (use.pushes() < RowUse::kManyPushes) {
      Remove(entry->key, rows, counts_.rows_evicted);
      return true;
    }
    layout.set_use(entry->row, use.WithPushes(1));
    ++considered;
    if (use.Age(now) > oldest_age) {
      oldest_age = use.Age(now);
      oldest = entry->key;
    }
  }
  if (!oldest.has_value()) return false;
  Remove(*oldest, rows, counts_.rows_evicted);
  return true;
}

bool RowRetention::Contains(const KeyBatch& batch, uint64_t key) {
  if (batch_hashes_.empty()) {
    for (size_t i = 0; i < batch.count; ++i) {
      batch_hashes_.push_back(HashKey(batch.key(i)));
    }
    // Those of requests are already.
    if (!std::is_sorted(batch_hashes_.begin(), batch_hashes_.end())) {
      std::sort(batch_hashes_.begin(), batch_hashes_.end());
    }
  }
  return std::binary_search(batch_hashes_.begin(), batch_hashes_.end(),
                            HashKey(key));
}

void RowRetention::Remove(uint64_t key, RowStore& rows, int64_t& counter) {
  rows.Erase(key, rows.Hash(key));
  removed_.push_back(key);
  ++counter;
}

}  // namespace hawser::ps
