#include "ps/storage/disk/row_tier.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/table_format.h"

namespace hawser::ps {
namespace {

// The least hash of a key in `shard`, or of any later one.
uint64_t FirstHash(int64_t shard, int64_t num_shards) {
  __extension__ using Wide = unsigned __int128;
  const auto shards = static_cast<Wide>(num_shards);
  return static_cast<uint64_t>(((static_cast<Wide>(shard) << 64) + shards - 1) /
                               shards);
}

HashRange RangeOf(const PartitionShare& share, int64_t num_shards) {
  const int64_t end = share.first_shard + share.num_shards;
  return {FirstHash(share.first_shard, num_shards),
          // 2^64 - 1 for the last shard.
          FirstHash(end, num_shards) - 1};
}

}  // namespace

RowTier::RowTier(std::shared_ptr<const TableFormat> format, RowDisk& disk,
                 const PartitionShare& share)
    : format_(std::move(format)),
      disk_(disk),
      capacity_(CapacityOf(format_->spec().storage.rows_in_memory,
                           format_->spec(), share)),
      range_(RangeOf(share, format_->spec().num_shards)),
      clock_(format_, EvictionClock::Uses::kCache) {}

void RowTier::FindAbsent(const KeyBatch& batch, const RowStore& rows) {
  constexpr size_t kGroup = 64;
  absent_.clear();
  uint64_t hashes[kGroup];
  for (size_t begin = 0; begin < batch.count; begin += kGroup) {
    const size_t size = std::min(kGroup, batch.count - begin);
    for (size_t i = 0; i < size; ++i) {
      hashes[i] = rows.Hash(batch.key(begin + i));
      rows.Prefetch(hashes[i]);
    }
    for (size_t i = 0; i < size; ++i) {
      const uint64_t key = batch.key(begin + i);
      if (rows.Find(key, hashes[i]) == nullptr) absent_.push_back(key);
    }
  }
  std::sort(absent_.begin(), absent_.end());
  absent_.erase(std::unique(absent_.begin(), absent_.end()), absent_.end());
}

// Steps:
//   1. Read the rows that are not in memory.
//   2. Write others to the disk, and remove them from memory.
//   3. Insert those that were read, and create those that are nowhere.
absl::Status RowTier::Load(const KeyBatch& batch, int64_t now, RowStore& rows) {
  RETURN_IF_ERROR(FinishRemoval());
  created_.clear();
  FindAbsent(batch, rows);
  clock_.Begin(batch);
  const size_t row_bytes = format_->layout().bytes();
  const size_t stored_bytes = StoredBytes(format_->layout());
  std::vector<size_t> loaded;
  std::vector<std::byte> loaded_rows;
  RETURN_IF_ERROR(disk_.Read(absent_, [&](size_t i, const std::byte* row) {
    loaded.push_back(i);
    loaded_rows.insert(loaded_rows.end(), row, row + stored_bytes);
  }));
  RETURN_IF_ERROR(rows.Reserve(absent_.size()));
  RETURN_IF_ERROR(Evict(now, rows));
  std::vector<uint8_t> is_loaded(absent_.size());
  for (size_t i = 0; i < loaded.size(); ++i) {
    const uint64_t key = absent_[loaded[i]];
    is_loaded[loaded[i]] = 1;
    const std::byte* const stored = &loaded_rows[i * stored_bytes];
    std::byte* const row =
        rows.Load(key, rows.Hash(key), GenerationOf(format_->layout(), stored));
    std::memcpy(row, stored, row_bytes);
    format_->layout().set_use(row, RowUse(now, 0));
  }
  for (size_t i = 0; i < absent_.size(); ++i) {
    if (is_loaded[i] != 0) continue;
    rows.Create(absent_[i], rows.Hash(absent_[i]));
    created_.push_back(absent_[i]);
  }
  num_rows_ += static_cast<int64_t>(created_.size());
  return absl::OkStatus();
}

absl::Status RowTier::Evict(int64_t now, RowStore& rows) {
  const size_t row_bytes = format_->layout().bytes();
  std::vector<uint64_t> keys;
  std::vector<std::byte> evicted;
  while (rows.size() + absent_.size() > capacity_) {
    // The rows of one push may be more than the share.
    const auto entry = clock_.Choose(rows, now);
    if (!entry.has_value()) break;
    keys.push_back(entry->key);
    evicted.insert(evicted.end(), entry->row, entry->row + row_bytes);
    const uint32_t generation = rows.Unload(entry->key, rows.Hash(entry->key));
    const auto* const bytes = reinterpret_cast<const std::byte*>(&generation);
    evicted.insert(evicted.end(), bytes, bytes + sizeof(generation));
  }
  absl::Status status = disk_.Write(keys, evicted, {});
  if (status.ok()) return status;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::byte* const row = &evicted[i * StoredBytes(format_->layout())];
    std::memcpy(rows.Load(keys[i], rows.Hash(keys[i]),
                          GenerationOf(format_->layout(), row)),
                row, row_bytes);
  }
  return status;
}

bool RowTier::WasCreated(uint64_t key) const {
  return std::binary_search(created_.begin(), created_.end(), key);
}

absl::Status RowTier::Remove(std::span<const uint64_t> keys, RowStore& rows) {
  for (const uint64_t key : keys) {
    const uint64_t hash = rows.Hash(key);
    if (rows.Find(key, hash) != nullptr) rows.Erase(key, hash);
  }
  removed_.insert(removed_.end(), keys.begin(), keys.end());
  return FinishRemoval();
}

absl::Status RowTier::FinishRemoval() {
  RETURN_IF_ERROR(disk_.Write({}, {}, removed_));
  removed_.clear();
  return absl::OkStatus();
}

absl::Status RowTier::Import(std::span<const std::byte> rows, RowStore& store) {
  const size_t row_bytes = format_->layout().bytes();
  const size_t step = sizeof(uint64_t) + row_bytes;
  const size_t count = rows.size() / step;
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&keys[i], &rows[i * step], sizeof(uint64_t));
  }
  std::vector<uint8_t> exists(count);
  RETURN_IF_ERROR(
      disk_.Read(keys, [&](size_t i, const std::byte*) { exists[i] = 1; }));
  RETURN_IF_ERROR(store.Reserve(
      std::min(count, capacity_ - std::min(capacity_, store.size()))));
  const uint32_t generation = store.changes().generation();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&generation);
  std::vector<uint64_t> written;
  std::vector<std::byte> written_rows;
  int64_t added = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto row = rows.subspan(i * step + sizeof(uint64_t), row_bytes);
    const uint64_t hash = store.Hash(keys[i]);
    std::byte* in_memory = store.FindToChange(keys[i], hash);
    if (in_memory == nullptr) {
      added += exists[i] == 0 ? 1 : 0;
      if (store.size() < capacity_) in_memory = store.Insert(keys[i], hash);
    }
    if (in_memory != nullptr) {
      std::memcpy(in_memory, row.data(), row_bytes);
    } else {
      written.push_back(keys[i]);
      written_rows.insert(written_rows.end(), row.begin(), row.end());
      written_rows.insert(written_rows.end(), bytes,
                          bytes + sizeof(generation));
    }
  }
  RETURN_IF_ERROR(disk_.Write(written, written_rows, {}));
  num_rows_ += added;
  return absl::OkStatus();
}

}  // namespace hawser::ps
