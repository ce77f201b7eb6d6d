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
#include "ps/storage/memory/row_store.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/retention/eviction_clock.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

// Keys whose loads from memory overlap.
constexpr size_t kGroup = 64;

// The part of `total` for the shards of a partition; at least one.
size_t ShareOf(int64_t total, const TableSpec& spec,
               const PartitionShare& share) {
  const double part = static_cast<double>(share.num_shards) /
                      static_cast<double>(spec.num_shards);
  return std::max(static_cast<size_t>(static_cast<double>(total) * part),
                  size_t{1});
}

}  // namespace

size_t CapacityOf(int64_t max_rows, const TableSpec& spec,
                  const PartitionShare& share) {
  return std::min(ShareOf(max_rows, spec, share),
                  static_cast<size_t>(share.max_rows));
}

RowRetention::RowRetention(std::shared_ptr<const TableFormat> format,
                           const PartitionShare& share)
    : format_(std::move(format)),
      capacity_(format_->spec().retention.max_rows == 0
                    ? 0
                    : CapacityOf(format_->spec().retention.max_rows,
                                 format_->spec(), share)),
      max_rows_(static_cast<size_t>(share.max_rows)),
      admission_pushes_(
          static_cast<uint32_t>(format_->spec().retention.admission_pushes)),
      sketch_(ShareOf(format_->spec().retention.admission_window,
                      format_->spec(), share)),
      clock_(format_, EvictionClock::Uses::kState) {}

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
  clock_.Begin(batch);
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
    if (capacity_ > 0 && rows.size() >= capacity_ && !Evict(now, rows)) {
      ++counts_.updates_without_room;
      dropped_.push_back(index);
      continue;
    }
    format_->layout().set_use(rows.Create(key, hash), RowUse(now, 0));
  }
  // After a restore onto partitions of other sizes.
  for (size_t i = 0;
       i < batch.count && capacity_ > 0 && rows.size() > capacity_; ++i) {
    if (!Evict(now, rows)) break;
  }
}

void RowRetention::Sweep(size_t positions, int64_t now, RowStore& rows) {
  const size_t row_bytes = format_->layout().bytes();
  positions = std::min(positions, rows.num_positions());
  for (size_t i = 0; i < positions; ++i) {
    const auto entry = NextEntry(rows, row_bytes, swept_);
    if (!entry.has_value() || !format_->HasExpired(entry->row, now)) continue;
    Remove(entry->key, rows, counts_.rows_expired);
  }
}

bool RowRetention::Evict(int64_t now, RowStore& rows) {
  const auto entry = clock_.Choose(rows, now);
  if (!entry.has_value()) return false;
  Remove(entry->key, rows,
         format_->HasExpired(entry->row, now) ? counts_.rows_expired
                                              : counts_.rows_evicted);
  return true;
}

void RowRetention::Remove(uint64_t key, RowStore& rows, int64_t& counter) {
  rows.Erase(key, rows.Hash(key));
  removed_.push_back(key);
  ++counter;
}

}  // namespace hawser::ps
