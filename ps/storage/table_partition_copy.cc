// Copies of the rows of a partition, for files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/snapshot/partition_copy.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

// The uses of rows, by their slots in a store that has nothing else.
struct UsesCopy {
  void Take(const RowStore& store) {
    bits.resize(store.num_slots());
    store.CopySlots(reinterpret_cast<std::byte*>(bits.data()));
    store.ForEachSlot(
        [&](uint64_t key, uint32_t slot) { keys.emplace_back(key, slot); });
  }

  std::vector<uint32_t> bits;
  std::vector<std::pair<uint64_t, uint32_t>> keys;
};

}  // namespace

bool TablePartition::KnowsSnapshot(uint64_t snapshot) const {
  const async::MutexLock lock(&mutex_);
  return retained_rows().changes().Knows(snapshot);
}

void TablePartition::BeginChanges(uint64_t snapshot) {
  const async::MutexLock lock(&mutex_);
  retained_rows().Cut(snapshot);
}

void TablePartition::CopySlots(const std::optional<ChangesSince>& changes,
                               PartitionCopy& copy) const {
  const size_t row_bytes = format_->layout().bytes();
  copy.Reserve(rows_.num_slots(), row_bytes);
  // The changes of uses_ are those of its own slots.
  const bool copies_all = !changes.has_value() || uses_ != nullptr;
  if (copies_all) rows_.CopySlots(copy.slots.data());
  const RowStore* const rows = &rows_;
  rows_.ForEachSlot([&](uint64_t key, uint32_t slot) {
    copy.keys[slot] = key;
    copy.used[slot] = PartitionCopy::kCopied;
    if (copies_all) return;
    if (!changes->changed.Contains(slot)) {
      copy.used[slot] = PartitionCopy::kUnchanged;
      return;
    }
    std::memcpy(&copy.slots[slot * row_bytes], rows->RowIn(slot), row_bytes);
  });
}

// Steps:
//   1. Make room, so that the memory is there in the next step.
//   2. Under the lock, copy the rows as they lie, and the keys by slot.
//   3. Put keys and rows together.
absl::StatusOr<AppliedPushes> TablePartition::Export(PartitionCopy& copy,
                                                     const SnapshotCut& cut) {
  size_t end = 0;
  {
    const async::MutexLock lock(&mutex_);
    end = rows_.num_slots();
  }
  // Some more, for rows that are created meanwhile.
  copy.Reserve(end + end / 8 + 1024, format_->layout().bytes());
  std::fill(copy.used.begin(), copy.used.end(), PartitionCopy::kFree);
  copy.removed.clear();
  copy.disk_generation = 0;
  copy.uses.reset();
  std::optional<ChangesSince> changes;
  UsesCopy uses;
  AppliedPushes pushes;
  {
    const async::MutexLock lock(&mutex_);
    if (cut.base != 0) {
      changes = retained_rows().Since(cut.base);
      if (!changes.has_value()) {
        return absl::FailedPreconditionError(
            "the changes since that snapshot are not known");
      }
    }
    CopySlots(changes, copy);
    pushes = CopyPushes();
    if (tier_ != nullptr) {
      copy.disk = tier_->disk().TakeSnapshot();
      copy.disk_range = tier_->range();
    }
    if (uses_ != nullptr) uses.Take(*uses_);
    if (cut.snapshot != 0) retained_rows().Cut(cut.snapshot);
  }
  const int64_t now = format_->rows_expire() ? time_->Now() : 0;
  if (changes.has_value()) {
    copy.removed = std::move(changes->removed);
    copy.disk_generation = changes->generation;
  }
  if (uses_ != nullptr) {
    copy.uses.emplace();
    for (const auto& [key, slot] : uses.keys) {
      if (changes.has_value() && !changes->changed.Contains(slot)) continue;
      if (format_->HasExpired(RowUse::FromBits(uses.bits[slot]), now)) continue;
      copy.uses->emplace(key, uses.bits[slot]);
    }
  }
  JoinKeysAndRows(now, copy);
  return pushes;
}

void TablePartition::JoinKeysAndRows(int64_t now, PartitionCopy& copy) const {
  const RowLayout& layout = format_->layout();
  copy.rows.resize(copy.used.size() * exported_row_bytes());
  std::byte* next = copy.rows.data();
  for (size_t slot = 0; slot < copy.used.size(); ++slot) {
    if (copy.used[slot] != PartitionCopy::kCopied) continue;
    std::byte* const row = &copy.slots[slot * layout.bytes()];
    if (copy.uses.has_value()) {
      const auto found = copy.uses->find(copy.keys[slot]);
      if (found == copy.uses->end()) continue;
      layout.set_use(row, RowUse::FromBits(found->second));
    } else if (tier_ != nullptr) {
      // Says only which rows are in memory.
      layout.set_use(row, RowUse());
    } else if (format_->HasExpired(row, now)) {
      continue;
    }
    std::memcpy(next, &copy.keys[slot], sizeof(uint64_t));
    std::memcpy(next + sizeof(uint64_t), row, layout.bytes());
    next += exported_row_bytes();
  }
  copy.rows.resize(static_cast<size_t>(next - copy.rows.data()));
}

absl::Status TablePartition::Import(std::span<const std::byte> rows,
                                    int64_t later) {
  const RowLayout& layout = format_->layout();
  const size_t step = exported_row_bytes();
  const int64_t now = time_->Now();
  // Of rows that are younger than their TTL.
  std::vector<std::byte> kept;
  if (layout.has_use()) {
    kept.reserve(rows.size());
    for (size_t begin = 0; begin + step <= rows.size(); begin += step) {
      const auto entry = rows.subspan(begin, step);
      const std::byte* const row = &entry[sizeof(uint64_t)];
      const RowUse use = layout.use(row).Later(later);
      if (format_->HasExpired(use, now)) continue;
      kept.insert(kept.end(), entry.begin(), entry.end());
      layout.set_use(&kept[kept.size() - layout.bytes()], use);
    }
    rows = kept;
  }
  const async::MutexLock lock(&mutex_);
  if (uses_ != nullptr) RETURN_IF_ERROR(ImportUses(rows));
  if (tier_ != nullptr) return tier_->Import(rows, rows_);
  RETURN_IF_ERROR(rows_.Reserve(rows.size() / step));
  for (size_t begin = 0; begin + step <= rows.size(); begin += step) {
    uint64_t key = 0;
    std::memcpy(&key, &rows[begin], sizeof(key));
    const uint64_t hash = rows_.Hash(key);
    std::byte* row = rows_.FindToChange(key, hash);
    if (row == nullptr) row = rows_.Insert(key, hash);
    std::memcpy(row, &rows[begin + sizeof(key)], layout.bytes());
  }
  return absl::OkStatus();
}

absl::Status TablePartition::ImportUses(std::span<const std::byte> rows) {
  const size_t step = exported_row_bytes();
  RETURN_IF_ERROR(uses_->Reserve(rows.size() / step));
  for (size_t begin = 0; begin + step <= rows.size(); begin += step) {
    uint64_t key = 0;
    std::memcpy(&key, &rows[begin], sizeof(key));
    SetUse(key, format_->layout().use(&rows[begin + sizeof(key)]));
  }
  return absl::OkStatus();
}

void TablePartition::ImportPushes(rpc::Incarnation client,
                                  const PushWindow& pushes) {
  const async::MutexLock lock(&mutex_);
  pushes_.Erase(client);
  pushes_.Add(client, std::make_unique<PushWindow>(pushes));
}

void TablePartition::ImportPushes(InheritedPushes::Range range) {
  const async::MutexLock lock(&mutex_);
  inherited_.Add(std::move(range));
}

AppliedPushes TablePartition::CopyPushes() const {
  AppliedPushes pushes;
  pushes_.ForEach([&](rpc::Incarnation client, const auto& window) {
    pushes.clients.emplace_back(client, *window);
  });
  pushes.inherited = inherited_.ranges();
  for (InheritedPushes::Range& range : pushes.inherited) {
    for (auto it = range.clients.begin(); it != range.clients.end();) {
      const auto& [client, window] = *it;
      // Pushes that are too old for this partition need not be known.
      const auto* const own = pushes_.Find(client);
      const bool too_old =
          own != nullptr &&
          (*own)->highest() >= window.highest() + PushWindow::kDepth;
      it = too_old ? range.clients.erase(it) : std::next(it);
    }
  }
  return pushes;
}

absl::StatusOr<KeyBatch> TablePartition::NotInherited(
    const KeyBatch& batch, const std::optional<PushId>& id) {
  if (!id.has_value() || inherited_.ranges().empty()) return batch;
  return inherited_.WithoutApplied(batch, id->client, id->sequence);
}

void TablePartition::ForEachRow(
    absl::FunctionRef<void(uint64_t key, const std::byte* row)> visit) const {
  const int64_t now = format_->rows_expire() ? time_->Now() : 0;
  const async::MutexLock lock(&mutex_);
  const RowStore* const uses = uses_.get();
  rows_.ForEach([&](uint64_t key, const std::byte* row) {
    if (uses != nullptr) {
      const std::byte* const use = uses->Find(key, uses->Hash(key));
      if (use == nullptr || uses_format_->HasExpired(use, now)) return;
    } else if (format_->HasExpired(row, now)) {
      return;
    }
    visit(key, row);
  });
}

}  // namespace hawser::ps
