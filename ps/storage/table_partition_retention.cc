// Rows of a partition that are created and removed by Retention options.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/yielding_mutex.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/push_window.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"

namespace hawser::ps {
namespace {

// Of the map of keys, per key.
constexpr size_t kKeyBytes = 17;

}  // namespace

std::shared_ptr<const TableFormat> TablePartition::UsesFormat(
    const TableFormat& format, const RowDisk* disk) {
  return disk != nullptr && format.spec().retention.active()
             ? TableFormat::OfUses(format)
             : nullptr;
}

std::unique_ptr<RowRetention> TablePartition::MakeRetention(
    PartitionShare share) const {
  if (!format_->spec().retention.active()) return nullptr;
  if (uses_format_ == nullptr) {
    return std::make_unique<RowRetention>(format_, share);
  }
  // Memory for a row is enough for the uses of several.
  share.max_rows *= static_cast<int64_t>(
      std::max((format_->layout().bytes() + kKeyBytes) /
                   (uses_format_->layout().bytes() + kKeyBytes),
               size_t{1}));
  return std::make_unique<RowRetention>(uses_format_, share);
}

absl::StatusOr<KeyBatch> TablePartition::AdmitRetained(const KeyBatch& batch,
                                                       AdmittedRows rows,
                                                       Admission admission) {
  retention_->ClearRemoved();
  if (admission == Admission::kDecided) {
    RowStore& store = retained_rows();
    RETURN_IF_ERROR(store.Reserve(CountMissing(batch, store)));
    for (size_t i = 0; uses_ != nullptr && i < batch.count; ++i) {
      const uint64_t key = batch.key(i);
      const uint64_t hash = uses_->Hash(key);
      if (uses_->Find(key, hash) == nullptr) uses_->Create(key, hash);
    }
    return batch;
  }
  RETURN_IF_ERROR(Retain(batch, rows, admitted_));
  return KeyBatch{batch.keys, admitted_.positions.size(),
                  admitted_.positions.data()};
}

absl::Status TablePartition::Retain(const KeyBatch& batch, AdmittedRows rows,
                                    AdmittedKeys& admitted) {
  RETURN_IF_ERROR(
      retention_->Admit(batch, rows, time_->Now(), retained_rows(), admitted));
  if (tier_ == nullptr) return absl::OkStatus();
  return tier_->Remove(retention_->removed(), rows_);
}

bool TablePartition::HasNoUse(uint64_t key, int64_t now) const {
  const std::byte* const use = uses_->Find(key, uses_->Hash(key));
  return use == nullptr || uses_format_->HasExpired(use, now);
}

void TablePartition::SetUse(uint64_t key, RowUse use) {
  const uint64_t hash = uses_->Hash(key);
  std::byte* row = uses_->FindToChange(key, hash);
  if (row == nullptr) row = uses_->Create(key, hash);
  uses_format_->layout().set_use(row, use);
}

absl::StatusOr<TablePartition::Decisions> TablePartition::Decide(
    const KeyBatch& batch, AdmittedRows rows, const PushId& id) {
  const async::YieldingMutexLock lock(&mutex_);
  Decisions decisions;
  ASSIGN_OR_RETURN(const PushWindow* const window, WindowFor(id));
  decisions.repeated = window == nullptr;
  if (decisions.repeated) return decisions;
  ASSIGN_OR_RETURN(const KeyBatch fresh, NotInherited(batch, id));
  RETURN_IF_ERROR(Retain(fresh, rows, decisions.admitted));
  decisions.removed = retention_->removed();
  return decisions;
}

void TablePartition::RemoveRows(const KeyBatch& batch, const PushId& id) {
  const async::YieldingMutexLock lock(&mutex_);
  const absl::StatusOr<PushWindow*> window = WindowFor(id);
  if (!window.ok() || *window == nullptr) return;
  // Rows that are still on the disk are removed from there with the next push.
  EraseRows(batch).IgnoreError();
}

absl::Status TablePartition::Erase(const KeyBatch& batch) {
  const async::YieldingMutexLock lock(&mutex_);
  return EraseRows(batch);
}

absl::Status TablePartition::EraseRows(const KeyBatch& batch) {
  RowStore& store = retained_rows();
  std::vector<uint64_t> erased;
  for (size_t i = 0; i < batch.count; ++i) {
    const uint64_t key = batch.key(i);
    const uint64_t hash = store.Hash(key);
    if (store.Find(key, hash) == nullptr) continue;
    store.Erase(key, hash);
    erased.push_back(key);
  }
  return tier_ == nullptr ? absl::OkStatus() : tier_->Remove(erased, rows_);
}

}  // namespace hawser::ps
