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

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

void PartitionCopy::Reserve(size_t count, size_t row_bytes) {
  if (keys.size() >= count) return;
  slots.resize(count * row_bytes);
  keys.resize(count);
  used.resize(count);
}

absl::Status PartitionCopy::ForEachRowOnDisk(
    absl::FunctionRef<absl::Status(uint64_t, const std::byte*)> visit) const {
  if (disk == nullptr) return absl::OkStatus();
  absl::flat_hash_set<uint64_t> in_memory;
  for (size_t slot = 0; slot < used.size(); ++slot) {
    if (used[slot] != 0) in_memory.insert(keys[slot]);
  }
  return disk->ForEach(disk_range, [&](uint64_t key, const std::byte* row) {
    return in_memory.contains(key) ? absl::OkStatus() : visit(key, row);
  });
}

// Steps:
//   1. Make room, so that the memory is there in the next step.
//   2. Under the lock, copy the rows as they lie, and the keys by slot.
//   3. Put keys and rows together.
std::vector<std::pair<rpc::Incarnation, PushWindow>> TablePartition::Export(
    PartitionCopy& copy) const {
  const size_t row_bytes = format_->layout().bytes();
  size_t end = 0;
  {
    const async::MutexLock lock(&mutex_);
    end = rows_.num_slots();
  }
  // Some more, for rows that are created meanwhile.
  copy.Reserve(end + end / 8 + 1024, row_bytes);
  std::fill(copy.used.begin(), copy.used.end(), uint8_t{0});
  std::vector<std::pair<rpc::Incarnation, PushWindow>> pushes;
  {
    const async::MutexLock lock(&mutex_);
    end = rows_.num_slots();
    copy.Reserve(end, row_bytes);
    rows_.CopySlots(copy.slots.data());
    rows_.ForEachSlot([&](uint64_t key, uint32_t slot) {
      copy.keys[slot] = key;
      copy.used[slot] = 1;
    });
    pushes_.ForEach([&](rpc::Incarnation client, const auto& window) {
      pushes.emplace_back(client, *window);
    });
    if (tier_ != nullptr) {
      copy.disk = tier_->disk().TakeSnapshot();
      copy.disk_range = tier_->range();
      copy.num_rows = tier_->num_rows();
    }
  }
  const int64_t now = format_->rows_expire() ? time_->Now() : 0;
  copy.rows.resize(end * exported_row_bytes());
  std::byte* next = copy.rows.data();
  for (size_t slot = 0; slot < end; ++slot) {
    const std::byte* const row = &copy.slots[slot * row_bytes];
    if (copy.used[slot] == 0 || format_->HasExpired(row, now)) continue;
    std::memcpy(next, &copy.keys[slot], sizeof(uint64_t));
    std::memcpy(next + sizeof(uint64_t), row, row_bytes);
    next += exported_row_bytes();
  }
  copy.rows.resize(static_cast<size_t>(next - copy.rows.data()));
  if (copy.disk == nullptr) {
    copy.num_rows =
        static_cast<int64_t>(copy.rows.size() / exported_row_bytes());
  }
  return pushes;
}

absl::Status TablePartition::Import(std::span<const std::byte> rows,
                                    int64_t later) {
  const size_t row_bytes = format_->layout().bytes();
  const size_t count = rows.size() / exported_row_bytes();
  const async::MutexLock lock(&mutex_);
  if (tier_ != nullptr) return tier_->Import(rows, rows_);
  RETURN_IF_ERROR(rows_.Reserve(count));
  const std::byte* next = rows.data();
  for (size_t i = 0; i < count; ++i) {
    uint64_t key = 0;
    std::memcpy(&key, next, sizeof(key));
    const uint64_t hash = rows_.Hash(key);
    std::byte* row = rows_.Find(key, hash);
    if (row == nullptr) row = rows_.Insert(key, hash);
    std::memcpy(row, next + sizeof(key), row_bytes);
    const RowLayout& layout = format_->layout();
    if (layout.has_use()) layout.set_use(row, layout.use(row).Later(later));
    next += sizeof(key) + row_bytes;
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

std::vector<InheritedPushes::Range> TablePartition::inherited_pushes() const {
  const async::MutexLock lock(&mutex_);
  std::vector<InheritedPushes::Range> ranges = inherited_.ranges();
  for (InheritedPushes::Range& range : ranges) {
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
  return ranges;
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
  rows_.ForEach([&](uint64_t key, const std::byte* row) {
    if (!format_->HasExpired(row, now)) visit(key, row);
  });
}

}  // namespace hawser::ps
