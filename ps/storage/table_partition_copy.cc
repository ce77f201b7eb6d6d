// Copies of the rows of a partition, for files.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "async/yielding_mutex.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/memory/slot_set.h"
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

bool TablePartition::KnowsSnapshot(uint64_t snapshot) const {
  const async::YieldingMutexLock lock(&mutex_);
  return retained_rows().changes().Knows(snapshot);
}

void TablePartition::BeginChanges(uint64_t snapshot) {
  const async::YieldingMutexLock lock(&mutex_);
  retained_rows().Cut(snapshot);
}

// Steps:
//   1. Make room, so that the memory is there in the next step.
//   2. Under the lock, note which rows there are, and save them from changes.
//   3. Copy the rows, letting other requests have the lock meanwhile.
//   4. Drop the rows that have expired.
absl::StatusOr<AppliedPushes> TablePartition::Export(PartitionCopy& copy,
                                                     const SnapshotCut& cut) {
  const async::MutexLock exporting(&export_mutex_);
  size_t end = 0;
  {
    const async::YieldingMutexLock lock(&mutex_);
    end = rows_.num_slots();
  }
  // Some more, for rows that are created meanwhile.
  copy.rows.Reserve(end + end / 8 + 1024, format_->layout().bytes());
  copy.removed.clear();
  copy.disk_generation = 0;
  copy.keys_in_memory.clear();
  std::optional<ChangesSince> changes;
  AppliedPushes pushes;
  {
    const async::YieldingMutexLock lock(&mutex_);
    if (cut.base != 0) {
      changes = retained_rows().Since(cut.base);
      if (!changes.has_value()) {
        return absl::FailedPreconditionError(
            "the changes since that snapshot are not known");
      }
    }
    BeginCopy(changes, copy);
    pushes = CopyPushes();
    if (cut.snapshot != 0) retained_rows().Cut(cut.snapshot);
    while (rows_.ContinueCopy()) mutex_.Yield();
    while (uses_ != nullptr && uses_->ContinueCopy()) mutex_.Yield();
  }
  if (changes.has_value()) {
    copy.removed = std::move(changes->removed);
    copy.disk_generation = changes->generation;
  }
  DropExpired(format_->rows_expire() ? time_->Now() : 0, copy);
  return pushes;
}

void TablePartition::BeginCopy(const std::optional<ChangesSince>& changes,
                               PartitionCopy& copy) {
  const SlotSet* const changed =
      changes.has_value() ? &changes->changed : nullptr;
  // The changes of uses_ are those of its own slots.
  rows_.BeginCopy(uses_ == nullptr ? changed : nullptr, copy.rows);
  if (uses_ != nullptr) uses_->BeginCopy(changed, copy.use_rows);
  if (tier_ == nullptr) return;
  copy.disk = tier_->disk().TakeSnapshot();
  copy.disk_range = tier_->range();
  rows_.ForEach([&](uint64_t key, const std::byte*) {
    copy.keys_in_memory.push_back(key);
  });
}

void TablePartition::DropExpired(int64_t now, PartitionCopy& copy) const {
  const RowLayout& layout = format_->layout();
  copy.uses.reset();
  if (uses_ != nullptr) {
    copy.uses.emplace();
    copy.use_rows.ForEach([&](uint64_t key, const std::byte* row) {
      const RowUse use = uses_format_->layout().use(row);
      if (!format_->HasExpired(use, now)) copy.uses->emplace(key, use.bits());
    });
    copy.rows.Filter([&](uint64_t key, std::byte* row) {
      const auto found = copy.uses->find(key);
      if (found == copy.uses->end()) return false;
      layout.set_use(row, RowUse::FromBits(found->second));
      return true;
    });
  } else if (tier_ != nullptr) {
    copy.rows.Filter([&](uint64_t, std::byte* row) {
      // Says only which rows are in memory.
      layout.set_use(row, RowUse());
      return true;
    });
  } else if (format_->rows_expire()) {
    copy.rows.Filter([&](uint64_t, const std::byte* row) {
      return !format_->HasExpired(row, now);
    });
  }
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
  const async::YieldingMutexLock lock(&mutex_);
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
  const async::YieldingMutexLock lock(&mutex_);
  pushes_.Erase(client);
  pushes_.Add(client, std::make_unique<PushWindow>(pushes));
}

void TablePartition::ImportPushes(InheritedPushes::Range range) {
  const async::YieldingMutexLock lock(&mutex_);
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
  const async::YieldingMutexLock lock(&mutex_);
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
