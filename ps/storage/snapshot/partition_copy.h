// A copy of the rows of a partition, for files.

#ifndef HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_COPY_H_
#define HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_COPY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/memory/row_copy.h"
#include "ps/storage/row_layout.h"

namespace hawser::ps {

// The snapshot that a copy of rows is made for.
struct SnapshotCut {
  // Its number: changes from then on are remembered as those since it. 0: the
  // copy is for no snapshot.
  uint64_t snapshot = 0;
  // The snapshot since which rows must have changed to be copied. 0: all are.
  uint64_t base = 0;
};

// The rows of a partition at one moment. Use one again for several partitions:
// its memory is then there already when a partition is locked.
struct PartitionCopy {
  // Calls visit(key, row) for the rows on the disk, until it returns an error,
  // which is then returned. Errors of RowDisk.
  absl::Status ForEachRowOnDisk(
      const RowLayout& layout,
      absl::FunctionRef<absl::Status(uint64_t key, const std::byte* row)> visit)
      const;

  // Of those in memory.
  RowCopy rows;
  // With a base: keys that had a row, and have lost it. Some may have one
  // again.
  std::vector<uint64_t> removed;

  // Null if there are none. Rows in memory are newer than those here.
  std::unique_ptr<RowDisk::Snapshot> disk;
  HashRange disk_range;
  // RowTier generation from which on rows on the disk are copied.
  uint32_t disk_generation = 0;
  // With rows on a disk: the keys of those in memory, also of those that are
  // not copied.
  std::vector<uint64_t> keys_in_memory;
  // For a table with rows on a disk and Retention options: the keys whose rows
  // are copied, with their RowUse::bits.
  std::optional<absl::flat_hash_map<uint64_t, uint32_t>> uses;
  // Where these come from.
  RowCopy use_rows;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_COPY_H_
