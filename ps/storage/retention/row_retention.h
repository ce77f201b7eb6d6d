// Decisions on which keys of a partition have rows: ps::Retention.

#ifndef HAWSER_PS_STORAGE_RETENTION_ROW_RETENTION_H_
#define HAWSER_PS_STORAGE_RETENTION_ROW_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/retention/eviction_clock.h"
#include "ps/storage/retention/frequency_sketch.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

// The part of a table that a partition holds.
struct PartitionShare {
  // Rows above which requests that would create some are refused.
  int64_t max_rows = 0;
  // Of the table's shards.
  int64_t first_shard = 0;
  int64_t num_shards = 0;
};

// The share of a partition in `max_rows` rows of the table, at least one, and
// at most share.max_rows.
size_t CapacityOf(int64_t max_rows, const TableSpec& spec,
                  const PartitionShare& share);

// Keys of a push whose rows it changes.
enum class AdmittedRows {
  // Those with rows, and those with enough pushes.
  kFrequent,
  // All for which there is room.
  kAll,
  // Those without rows, of which there is room for all or some.
  kMissing,
};

// The keys of a push that are admitted.
struct AdmittedKeys {
  // As KeyBatch::positions.
  std::vector<uint32_t> positions;
};

// Before a push changes rows, Admit removes and creates rows, so that each key
// that is admitted has one; rows of keys of the same push are not removed.
// Pushes then mark the rows that they update. Times are those of TableTime.
//
// Thread-compatible.
class RowRetention {
 public:
  RowRetention(std::shared_ptr<const TableFormat> format,
               const PartitionShare& share);

  // Makes rows for the keys of `batch` that are admitted, and removes a few
  // that are not needed. kResourceExhausted: out of memory or beyond max_rows;
  // no row was created.
  absl::Status Admit(const KeyBatch& batch, AdmittedRows admits, int64_t now,
                     RowStore& rows, AdmittedKeys& admitted);

  // The keys whose rows were removed since ClearRemoved.
  const std::vector<uint64_t>& removed() const { return removed_; }
  void ClearRemoved() { removed_.clear(); }

  const RetentionCounts& counts() const { return counts_; }
  // Memory of the counts of keys.
  size_t bytes() const { return sketch_.bytes(); }

 private:
  // Adds the indices in `batch` of keys that get a row to newcomers_, and those
  // of keys that are not admitted to dropped_.
  absl::Status FindNewcomers(const KeyBatch& batch, AdmittedRows admits,
                             int64_t now, const RowStore& rows);
  absl::Status Reserve(RowStore& rows) const;
  void CreateNewcomers(const KeyBatch& batch, int64_t now, RowStore& rows);
  // Removes rows of some positions that have expired.
  void Sweep(size_t positions, int64_t now, RowStore& rows);
  // Removes a row of a key that is not in the push. Returns false if there is
  // none.
  bool Evict(int64_t now, RowStore& rows);
  void Remove(uint64_t key, RowStore& rows, int64_t& counter);

  const std::shared_ptr<const TableFormat> format_;
  // Rows above which others are evicted; 0: none are.
  const size_t capacity_;
  // Rows above which a push is refused, if none are evicted.
  const size_t max_rows_;
  const uint32_t admission_pushes_;
  FrequencySketch sketch_;
  RetentionCounts counts_;
  EvictionClock clock_;
  // A position in the store.
  size_t swept_ = 0;
  std::vector<uint64_t> removed_;
  // Of the current push.
  std::vector<uint32_t> newcomers_;
  std::vector<uint32_t> dropped_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_ROW_RETENTION_H_
