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
#include "async/yielding_mutex.h"
#include "net/recent_keys.h"
#include "optim/update_rule.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/pushes/push_id.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/snapshot/partition_copy.h"
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

// What a push that did not fail has done.
enum class PushOutcome {
  kApplied,
  // Nothing: it had been applied before.
  kRepeated,
};

// The pushes that the rows of a partition contain.
struct AppliedPushes {
  std::vector<std::pair<rpc::Incarnation, PushWindow>> clients;
  // Those that some of the rows have from an earlier partition.
  std::vector<InheritedPushes::Range> inherited;
};

// Rows that are found in batches: keys are hashed, then their buckets and rows
// are loaded to the cache, group by group, ahead of their use, so that many
// loads from memory overlap.
//
// With Retention options, pulls create no rows, and pushes decide which keys
// have one: ps/storage/retention/row_retention.h. If rows are on a disk as
// well, the keys and uses of all rows are in memory, so that these decisions
// are the same.
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

  // Copies all rows as they are at one moment, or those that changed since a
  // snapshot; those that have expired are left out. Other requests wait only
  // while the keys are copied, and between them for some of the rows. Returns
  // the pushes that these rows contain. kFailedPrecondition: the changes since
  // cut.base are not known.
  absl::StatusOr<AppliedPushes> Export(PartitionCopy& copy,
                                       const SnapshotCut& cut = {});
  // Whether the changes since a snapshot are known.
  bool KnowsSnapshot(uint64_t snapshot) const;
  // Remembers changes from now on as those since `snapshot`, which has the rows
  // as they are.
  void BeginChanges(uint64_t snapshot);

  // Inserts rows in the form of RowCopy::rows, pushed to `later` seconds
  // later than they say; a row that exists is replaced, and one that has
  // expired is left out. kResourceExhausted: out of memory; nothing changed.
  absl::Status Import(std::span<const std::byte> rows, int64_t later);
  // Removes the rows of the keys that have one. Errors of RowDisk.
  absl::Status Erase(const KeyBatch& batch);
  // Adds pushes that the rows contain.
  void ImportPushes(rpc::Incarnation client, const PushWindow& pushes);
  // The same for some of the rows, which were in another partition before.
  void ImportPushes(InheritedPushes::Range range);
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
  static constexpr size_t kGroup = 16;
  struct Group {
    size_t size = 0;
    // Of those whose row FindAtHome has not found: their indices in the group.
    size_t num_elsewhere = 0;
    uint8_t elsewhere[kGroup];
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
    // Whether rows are changed.
    bool changes = false;
    // Gradients that are loaded as well; may be null.
    const float* gradients = nullptr;
    // Where rows are copied to, loaded as well; may be null.
    std::byte* copies = nullptr;
    // Whether another core may have that memory in its cache.
    bool copies_shared = false;
  };

  // Of uses_format_ and retention_.
  static std::shared_ptr<const TableFormat> UsesFormat(
      const TableFormat& format, const RowDisk* disk);
  std::unique_ptr<RowRetention> MakeRetention(PartitionShare share) const;

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
  // The same with Retention options, without rows that are on the disk.
  absl::StatusOr<KeyBatch> AdmitRetained(const KeyBatch& batch,
                                         AdmittedRows rows, Admission admission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the decision to RowRetention, and removes rows from the disk.
  absl::Status Retain(const KeyBatch& batch, AdmittedRows rows,
                      AdmittedKeys& admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The store whose keys are those of all rows of the table, with Retention
  // options, and whose uses are theirs.
  RowStore& retained_rows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return uses_ == nullptr ? rows_ : *uses_;
  }
  const RowStore& retained_rows() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return uses_ == nullptr ? rows_ : *uses_;
  }
  // Sets the use of a row in uses_, which has room.
  void SetUse(uint64_t key, RowUse use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EraseRows(const KeyBatch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Parts of Export and Import.
  AppliedPushes CopyPushes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginCopy(const std::optional<ChangesSince>& changes,
                 PartitionCopy& copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropExpired(int64_t now, PartitionCopy& copy) const;
  absl::Status ImportUses(std::span<const std::byte> rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Makes room for all keys of the batch, so that creating rows cannot fail.
  // kResourceExhausted: out of memory, or beyond the number of rows.
  absl::Status Reserve(const KeyBatch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls visit(Group&) for all rows of the batch, in order.
  template <class Visit>
  void VisitRows(const KeyBatch& batch, const Access& access,
                 const Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static size_t CountMissing(const KeyBatch& batch, const RowStore& rows);
  // Fills the group with the keys from position `begin` on.
  void Hash(const KeyBatch& batch, size_t begin, Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds most rows, and lists the others.
  void FindRows(const Access& access, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds those that FindRows has listed. Creates missing rows, for which there
  // must be room.
  void FindElsewhere(const Access& access, Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The following use rows of a group, under the lock of VisitRows.

  // Pull, of rows that are in memory or on the disk. Calls copy(key, row,
  // position) for each, with a row that is null if there is none.
  template <class Copy>
  absl::Status PullFromTier(const KeyBatch& batch, size_t row_bytes,
                            const Copy& copy);
  // Whether a key has no row, or one that has expired, by uses_.
  bool HasNoUse(uint64_t key, int64_t now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  // Of uses_; null without.
  const std::shared_ptr<const TableFormat> uses_format_;
  // Held by Export.
  async::Mutex export_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable async::YieldingMutex mutex_;
  RowStore rows_ ABSL_GUARDED_BY(mutex_);
  // The uses of all rows, with Retention options and rows on a disk; null for
  // other tables, whose rows in memory have them.
  const std::unique_ptr<RowStore> uses_ ABSL_PT_GUARDED_BY(mutex_);
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
