// Rows of a partition of which some are in memory and all others on disk.

#ifndef HAWSER_PS_STORAGE_DISK_ROW_TIER_H_
#define HAWSER_PS_STORAGE_DISK_ROW_TIER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/retention/eviction_clock.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"

namespace hawser::ps {

// A write-back cache: a row in memory is the current one, and is written to the
// disk when it leaves memory. Its row on the disk, if there is one, is older.
// On the disk, the number of the last snapshot before its last change
// (RowChanges::GenerationOf) follows the row in 4 bytes.
//
// Thread-compatible. Errors are those of RowDisk, and kResourceExhausted: out
// of memory; no row has changed then.
class RowTier {
 public:
  // `disk` must outlive this object.
  RowTier(std::shared_ptr<const TableFormat> format, RowDisk& disk,
          const PartitionShare& share);

  // Bytes of a row on the disk.
  static size_t StoredBytes(const RowLayout& layout) {
    return layout.bytes() + sizeof(uint32_t);
  }
  static uint32_t GenerationOf(const RowLayout& layout, const std::byte* row) {
    uint32_t generation = 0;
    std::memcpy(&generation, row + layout.bytes(), sizeof(generation));
    return generation;
  }

  // Brings the rows of all keys of a push to memory: those on the disk, and new
  // ones. Others are written to the disk and removed from memory, as far as the
  // rows are more than the partition's share. `now` is in seconds of TableTime.
  absl::Status Load(const KeyBatch& batch, int64_t now, RowStore& rows);
  // Whether the last Load has created the row of a key.
  bool WasCreated(uint64_t key) const;

  // Removes the rows of keys. After an error of RowDisk, they are removed from
  // the disk before other rows are read or written there.
  absl::Status Remove(std::span<const uint64_t> keys, RowStore& rows);

  // Inserts rows, each its key in 8 bytes and the row, in memory or on the
  // disk; a row that exists is replaced. After an error some may have been
  // inserted.
  absl::Status Import(std::span<const std::byte> rows, RowStore& store);

  // The number of rows, in memory and on the disk.
  int64_t num_rows() const { return num_rows_; }
  const RowDisk& disk() const { return disk_; }
  HashRange range() const { return range_; }

 private:
  // Sets absent_ to the keys of the batch that are not in memory, each once.
  void FindAbsent(const KeyBatch& batch, const RowStore& rows);
  // Removes the rows of removed_ from the disk.
  absl::Status FinishRemoval();
  // Moves rows to the disk, so that there is room for those of absent_.
  absl::Status Evict(int64_t now, RowStore& rows);

  const std::shared_ptr<const TableFormat> format_;
  RowDisk& disk_;
  const size_t capacity_;
  // Of the keys of the partition.
  const HashRange range_;
  EvictionClock clock_;
  int64_t num_rows_ = 0;
  // Keys whose rows may still be on the disk.
  std::vector<uint64_t> removed_;
  // Of the current push.
  std::vector<uint64_t> absent_;
  // In order.
  std::vector<uint64_t> created_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_DISK_ROW_TIER_H_
