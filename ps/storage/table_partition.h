// A part of the rows of a table, under one lock.

#ifndef HAWSER_PS_STORAGE_TABLE_PARTITION_H_
#define HAWSER_PS_STORAGE_TABLE_PARTITION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "net/recent_keys.h"
#include "optim/update_rule.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_format.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

// Treatment of keys without a row.
enum class MissingRows {
  kCreate,
  // A pull returns the initial weights and creates nothing.
  kKeep,
};

// Treatment of rows that exist, by an assignment.
enum class ExistingRows {
  kReplace,
  kKeep,
};

// Of the keys of a push to a table with Retention options.
enum class Admission {
  // Decides which keys have rows.
  kDecide,
  // Was decided by TablePartition::Decide: all keys get rows, and none are
  // removed.
  kDecided,
};

// Identity of a push, by which a repeated one is recognised.
struct PushId {
  rpc::Incarnation client{};
  // Counts the pushes of the client to the table, from 1.
  uint64_t sequence = 0;
};

// What a push that did not fail has done.
enum class PushOutcome {
  kApplied,
  // Nothing: it had been applied before.
  kRepeated,
};

// The rows of a partition at one moment. Use one again for several partitions:
// its memory is then there already when a partition is locked.
struct PartitionCopy {
  // Makes room for the rows of `slots` slots.
  void Reserve(size_t slots, size_t row_bytes);

  // Calls visit(key, row) for the rows on the disk, until it returns an error,
  // which is then returned. Errors of RowDisk.
  absl::Status ForEachRowOnDisk(
      absl::FunctionRef<absl::Status(uint64_t key, const std::byte* row)> visit)
      const;

  std::vector<std::byte> rows;
  // Number of rows, with those on the disk.
  int64_t num_rows = 0;
  // Null if there are none. Rows in memory are newer than those here.
  std::unique_ptr<RowDisk::Snapshot> disk;
  HashRange disk_range;
  // By slot: its row, its key, and whether it is in use.
  std::vector<std::byte> slots;
  std::vector<uint64_t> keys;
  std::vector<uint8_t> used;
};

// Rows that are found in batches: keys are hashed, then their buckets and rows
// are loaded to the cache, group by group, ahead of their use, so that many
// loads from memory overlap.
//
// With Retention options, pulls create no rows, and pushes decide which keys
// have one: ps/storage/retention/row_retention.h.
//
// Thread-safe: a call takes the lock once.
class TablePartition {
 public:
  // Clients whose pushes are remembered; above, the one that has been silent
  // longest is forgotten.
  static constexpr size_t kMaxClients = 4096;

  // `disk`, of a table with such storage, must outlive this object.
  TablePartition(std::shared_ptr<const TableFormat> format,
                 std::shared_ptr<const TableTime> time,
                 const PartitionShare& share, RowDisk* disk);

  // Copies the weights of row i of the request to `rows`, [n, width], for each
  // position i of the batch. kResourceExhausted: out of memory for missing
  // rows; none was created.
  absl::Status Pull(const KeyBatch& batch, MissingRows missing, float* rows);

  // The same for whole rows, laid out as in TableFormat::layout(), one after
  // the other in `rows`.
  absl::Status PullWholeRows(const KeyBatch& batch, MissingRows missing,
                             std::byte* rows);

  // Updates the rows of the batch from `gradients`, [n, width], at `rate`, in
  // the order of the positions; repeated keys are updated one after the other.
  // If a push with this `id` was applied before, does nothing. After an error
  // no row has changed.
  //
  // kResourceExhausted   no room for missing rows.
  // kFailedPrecondition  the last PushWindow::kDepth pushes of the client do
  // not
  //                      include this one, so it may have been applied before.
  absl::StatusOr<PushOutcome> Push(
      const KeyBatch& batch, const float* gradients, const PushRate& rate,
      const std::optional<PushId>& id = std::nullopt,
      Admission admission = Admission::kDecide);

  // Makes the rows of the batch new rows with the weights of `weights`, [n,
  // width], in the order of the positions: the state of the rule and the number
  // of updates begin anew. With Retention options all keys are admitted for
  // which there is room. Counts as a push with this `id`; errors as Push.
  absl::StatusOr<PushOutcome> Assign(
      const KeyBatch& batch, const float* weights, ExistingRows existing,
      const std::optional<PushId>& id = std::nullopt,
      Admission admission = Admission::kDecide);

  // For a log, with Retention options: decides for a push, which follows with
  // the keys that are admitted. Other pushes must wait meanwhile.
  struct Decisions {
    // Whether the push was applied before; nothing else is set then.
    bool repeated = false;
    AdmittedKeys admitted;
    // Keys whose rows were removed since the last push.
    std::vector<uint64_t> removed;
  };
  // Errors of Push.
  absl::StatusOr<Decisions> Decide(const KeyBatch& batch, AdmittedRows rows,
                                   const PushId& id);
  // Removes the rows of the keys that have one, unless the push `id` was
  // applied: they were removed by it.
  void RemoveRows(const KeyBatch& batch, const PushId& id);

  // Drops what is remembered of a client that makes no more pushes.
  void Forget(rpc::Incarnation client);

  // Copies all rows in memory to `copy`.rows, one after the other: the key in 8
  // bytes, then the row; those that have expired are left out. Other requests
  // wait only while the memory of the rows is copied as it is. Returns the
  // pushes that these rows contain, by client.
  std::vector<std::pair<rpc::Incarnation, PushWindow>> Export(
      PartitionCopy& copy) const;

  // Inserts rows in that form, pushed to `later` seconds later than they say; a
  // row that exists is replaced. kResourceExhausted: out of memory; nothing
  // changed.
  absl::Status Import(std::span<const std::byte> rows, int64_t later);
  // Adds pushes that the rows contain.
  void ImportPushes(rpc::Incarnation client, const PushWindow& pushes);
  // The same for some of the rows, which were in another partition before.
  void ImportPushes(InheritedPushes::Range range);
  std::vector<InheritedPushes::Range> inherited_pushes() const;
  // Of the table: the shards of this partition.
  int64_t first_shard() const { return first_shard_; }
  int64_t num_shards() const { return num_shards_; }

  // Size of a row in that form.
  size_t exported_row_bytes() const {
    return sizeof(uint64_t) + format_->layout().bytes();
  }

  // Calls visit(key, row) for each row in memory that has not expired, under
  // the lock.
  // The row is laid out as in TableFormat::layout().
  void ForEachRow(
      absl::FunctionRef<void(uint64_t key, const std::byte* row)> visit) const;

  // Rows in memory and on the disk; some may have expired.
  int64_t num_rows() const;
  // Memory of rows and keys, and of the counts of keys without rows.
  size_t bytes() const;
  RetentionCounts retention_counts() const;

 private:
  // Rows that one step of the pipeline finds.
  static constexpr size_t kGroup = 64;
  struct Group {
    size_t size = 0;
    uint32_t positions[kGroup];
    uint64_t keys[kGroup];
    uint64_t hashes[kGroup];
    std::byte* rows[kGroup];
  };

  // What a request needs of each row.
  struct Access {
    // With kKeep, rows of a group may be null.
    MissingRows missing;
    // Bytes at the beginning of the row that are used.
    size_t row_bytes;
    // Gradients that are loaded as well; may be null.
    const float* gradients = nullptr;
  };

  // The pushes of a client, or null if push `id` was applied before.
  // kFailedPrecondition as Push.
  absl::StatusOr<PushWindow*> WindowFor(const PushId& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The keys of `batch` to which push `id` was not applied in an earlier
  // partition. Errors of InheritedPushes.
  absl::StatusOr<KeyBatch> NotInherited(const KeyBatch& batch,
                                        const std::optional<PushId>& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The keys of `batch` that are admitted, for whose rows there is then room.
  // They are valid until the next call. Errors of Push.
  absl::StatusOr<KeyBatch> Admit(const KeyBatch& batch, AdmittedRows rows,
                                 Admission admission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room for all keys of the batch, so that creating rows cannot fail.
  // kResourceExhausted: out of memory, or beyond the number of rows.
  absl::Status Reserve(const KeyBatch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls visit(Group&) for all rows of the batch, in order.
  template <class Visit>
  void VisitRows(const KeyBatch& batch, const Access& access,
                 const Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t CountMissing(const KeyBatch& batch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills the group with the keys from position `begin` on.
  void Hash(const KeyBatch& batch, size_t begin, Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Creates missing rows, for which there must be room.
  void FindRows(const Access& access, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The following use rows of a group, under the lock of VisitRows.

  // Pull, of rows that are in memory or on the disk. Calls copy(key, row,
  // position) for each, with a row that is null if there is none.
  template <class Copy>
  absl::Status PullFromTier(const KeyBatch& batch, size_t row_bytes,
                            const Copy& copy);
  // Copies weights of any type and width, or a whole row, also of a missing row
  // (null).
  void CopyWeights(uint64_t key, const std::byte* row, float* weights) const;
  void CopyWholeRow(uint64_t key, const std::byte* row, std::byte* copy) const;
  // Counts an update of `row`, and returns its span without gradient and rate.
  optim::UpdateSpan NextUpdate(std::byte* row) const;
  // Notes a push to rows.
  void TouchRows(const Group& group, int64_t now) const;
  // Replaces rows that have expired by null.
  void HideExpired(Group& group, int64_t now) const;
  void Update(const Group& group, const float* gradients,
              double learning_rate) const;
  // Same for rows whose rules or learning rates may differ.
  void UpdateByKey(const Group& group, const float* gradients,
                   RowRates& rates) const;
  // Same for 16-bit rows.
  void UpdateNarrow(const Group& group, const float* gradients,
                    RowRates& rates) const;

  const std::shared_ptr<const TableFormat> format_;
  const std::shared_ptr<const TableTime> time_;
  const size_t max_rows_;
  const int64_t first_shard_;
  const int64_t num_shards_;
  mutable async::Mutex mutex_;
  RowStore rows_ ABSL_GUARDED_BY(mutex_);
  // Null without Retention options.
  const std::unique_ptr<RowRetention> retention_ ABSL_PT_GUARDED_BY(mutex_);
  // Of the current push.
  AdmittedKeys admitted_ ABSL_GUARDED_BY(mutex_);
  // Null if all rows are in memory.
  const std::unique_ptr<RowTier> tier_ ABSL_PT_GUARDED_BY(mutex_);
  // By client; the newest is the one that pushed last.
  net::RecentKeys<rpc::Incarnation, std::unique_ptr<PushWindow>> pushes_
      ABSL_GUARDED_BY(mutex_){kMaxClients};
  InheritedPushes inherited_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_PARTITION_H_
