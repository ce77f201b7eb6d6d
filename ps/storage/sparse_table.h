// The rows of a table that one server holds.

#ifndef HAWSER_PS_STORAGE_SPARSE_TABLE_H_
#define HAWSER_PS_STORAGE_SPARSE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

// Consecutive virtual shards.
struct ShardRange {
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

// The place of a server among the servers of a table.
struct ServerPlace {
  // From 0 on.
  int64_t index = 0;
  int64_t num_servers = 1;
};

// The shards of a server: each has as many as the others, or one more.
// kInvalidArgument: there is no such place, or there are more servers than
// shards.
absl::StatusOr<ShardRange> ShardsOf(ServerPlace place, int64_t num_shards);

struct SparseTableOptions {
  // Number of parts with a lock each. 0: four per processor.
  int num_partitions = 0;
  // The shards of the table that are held here. Unset: all.
  std::optional<ShardRange> shards = std::nullopt;
  // Rows that are held here; each partition takes its share. 0: as many as fit
  // into three quarters of the machine's memory.
  int64_t max_rows = 0;
  // By which rows age. Must outlive the table; null: the machine's.
  async::Clock* clock = nullptr;
  // For a table whose storage needs it; must outlive the table.
  DiskStorage* disk = nullptr;
};

// The keys of a request that one partition holds.
struct PartitionRange {
  TablePartition* partition = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

// A map from keys to rows: a server uses one per table; a program can use it
// directly, without any server.
//
// With rows on a disk, pulls and pushes also fail with the errors of RowDisk.
//
// Thread-safe. Each row is read and updated atomically; a request of several
// rows is not.
class SparseTable {
 public:
  // Errors of NormalizeTableSpec and DiskStorage::Create; kInvalidArgument: the
  // number of partitions or the shards are out of range; kFailedPrecondition:
  // the storage of the table needs a disk.
  static absl::StatusOr<std::unique_ptr<SparseTable>> Create(
      const TableSpec& spec, const SparseTableOptions& options = {});

  const TableSpec& spec() const { return format_->spec(); }
  const TableFormat& format() const { return *format_; }
  ShardRange shards() const { return shards_; }

  // Copies the rows of `keys` to `rows`.
  //
  //   keys  [n], in any order. A repeated key gives the same row again.
  //   rows  [n, width].
  //
  // kInvalidArgument     `rows` does not have n * width elements.
  // kFailedPrecondition  the shard of a key is not held here.
  // kResourceExhausted   no room for missing rows.
  absl::Status Pull(std::span<const uint64_t> keys, std::span<float> rows,
                    MissingRows missing = MissingRows::kCreate);

  // The same for whole rows, laid out as in TableFormat::layout().
  //
  //   rows  [n, TableFormat::layout().bytes()], of this size.
  absl::Status PullWholeRows(std::span<const uint64_t> keys,
                             std::span<std::byte> rows, MissingRows missing);

  // Updates the rows of `keys` by the table's rule, at `rate`. A repeated key
  // is updated once per occurrence, in order.
  //
  //   keys       [n], in any order.
  //   gradients  [n, width].
  //
  // kInvalidArgument     `gradients` does not have n * width elements.
  // kFailedPrecondition  the shard of a key is not held here; nothing changed.
  // kResourceExhausted   no room for missing rows; some keys may have
  // been
  //                      updated.
  absl::Status Push(std::span<const uint64_t> keys,
                    std::span<const float> gradients, const PushRate& rate);

  // Returns the partitions of keys that are strictly in the order of their
  // hashes, for a caller that reads or writes the rows of each partition
  // itself.
  //
  // kInvalidArgument     a key repeats the one before, or is out of order.
  // kFailedPrecondition  the shard of a key is not held here.
  absl::StatusOr<std::vector<PartitionRange>> SplitOrdered(
      std::span<const uint64_t> keys) const;

  size_t num_partitions() const { return partitions_.size(); }
  TablePartition& partition(size_t index) const { return *partitions_[index]; }

  // Inserts exported rows (TablePartition::Export), of which only those in
  // shards() are taken, pushed to `later` seconds later than they say.
  // kResourceExhausted: out of memory; some rows may have been inserted.
  absl::Status Import(std::span<const std::byte> rows, int64_t later = 0);

  // Removes the rows of those of the keys that have one here. Errors of
  // RowDisk.
  absl::Status Erase(std::span<const uint64_t> keys);

  // Whether all partitions know the changes since a snapshot, and from when on
  // they do: TablePartition::BeginChanges.
  bool KnowsSnapshot(uint64_t snapshot) const;
  void BeginChanges(uint64_t snapshot);

  // Removes the rows of keys that a logged push removed, as
  // TablePartition::RemoveRows does. kFailedPrecondition: the shard of a key is
  // not held here; nothing changed.
  absl::Status RemoveRows(std::span<const uint64_t> keys, const PushId& id);

  // Seconds for which the table was held: the time by which rows age. A table
  // that is recovered continues from AdvanceTime.
  int64_t time() const { return time_->Now(); }
  void AdvanceTime(int64_t time) { time_->AdvanceTo(time); }

  // The first clock that is not complete, as files of rows have it: a table
  // that is restored continues from there. 0 for an asynchronous table.
  int64_t clock() const { return clock_.load(std::memory_order_relaxed); }
  void AdvanceClock(int64_t clock);

  // Drops what is remembered of a client, as TablePartition::Forget does.
  void Forget(rpc::Incarnation client);

  // Calls visit(key, row) for each row, as TablePartition::ForEachRow does.
  void ForEachRow(
      absl::FunctionRef<void(uint64_t key, const std::byte* row)> visit) const;

  // Rows in memory and on the disk; some may have expired.
  int64_t num_rows() const;
  // Memory of rows and keys, and of the counts of keys without rows.
  size_t bytes() const;
  RetentionCounts retention_counts() const;

 private:
  static constexpr uint16_t kNotHeld = UINT16_MAX;

  SparseTable(std::shared_ptr<const TableFormat> format, ShardRange shards,
              std::unique_ptr<RowDisk> disk, int64_t partitions,
              int64_t max_rows, async::Clock* clock);

  absl::Status CheckSize(std::span<const uint64_t> keys, size_t numbers) const;
  absl::Status NotHeld(uint64_t key) const;
  // Calls visit(partition, batch) for the partitions of `keys`.
  absl::Status VisitPartitions(
      std::span<const uint64_t> keys,
      absl::FunctionRef<absl::Status(TablePartition&, const KeyBatch&)> visit);

  const std::shared_ptr<const TableFormat> format_;
  const std::shared_ptr<TableTime> time_;
  std::atomic<int64_t> clock_{0};
  // Null if all rows are in memory.
  const std::unique_ptr<RowDisk> disk_;
  const ShardRange shards_;
  // By shard: consecutive shards are in one partition. Constant after
  // construction.
  std::vector<uint16_t> partition_of_shard_;
  std::vector<std::unique_ptr<TablePartition>> partitions_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SPARSE_TABLE_H_
