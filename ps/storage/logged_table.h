// Rows of a table whose pushes are logged.

#ifndef HAWSER_PS_STORAGE_LOGGED_TABLE_H_
#define HAWSER_PS_STORAGE_LOGGED_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/rows_files.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_statistics.h"
#include "ps/storage/worker_clocks.h"

namespace hawser::v1 {
class ClockEvent;
}  // namespace hawser::v1

namespace hawser::ps {

// A table, with the clocks of its workers if it has any, and the log of the
// pushes since its last snapshot, if pushes are logged. A push is logged before
// it is applied: one that is acknowledged is in the log, and one that could not
// be logged was not applied.
//
// With Retention options the log has the keys that were admitted and those
// whose rows were removed: a recovery decides nothing, and gives the same rows.
// Such pushes are logged and applied one at a time.
//
// Thread-safe. The directory must outlive the table; it is null if pushes are
// not logged.
class LoggedTable {
 public:
  // Takes `table`, and with a directory writes its rows there and begins a log.
  // Files of an earlier table of that name are removed.
  static absl::StatusOr<std::shared_ptr<LoggedTable>> Create(
      std::unique_ptr<SparseTable> table, const RecoveryDirectory* directory,
      PushLogging logging);

  // Returns the tables of a directory, each from the rows in its newest file
  // that is not damaged, and the pushes logged since. `options` has the limits
  // and the clock of the tables.
  //
  //   kDataLoss  a table cannot be restored; names the files.
  static absl::StatusOr<std::vector<std::shared_ptr<LoggedTable>>> Recover(
      const RecoveryDirectory& directory, PushLogging logging,
      const SparseTableOptions& options = {});

  SparseTable& table() { return *table_; }

  // Observes pushes from now on. Call before the first one.
  void set_push_observer(PushObserver observer) {
    observer_ = std::move(observer);
  }
  void Observe(PushStage stage) const {
    if (observer_) observer_(stage);
  }

  bool is_logged() const { return directory_ != nullptr; }
  TableStatistics& statistics() { return statistics_; }
  // Null if the table is asynchronous.
  WorkerClocks* clocks() const { return clocks_.get(); }

  // Logs an event, and gives it to clocks(), which must exist. A worker that is
  // lost need not be logged. Errors of WorkerClocks::Check and PushLog::Append.
  absl::Status Record(const v1::ClockEvent& event);

  // Logs and applies a push, whose keys are distinct, in the order of their
  // hashes, in `ranges` of SparseTable::SplitOrdered. Then it has been applied
  // for clocks() as well. Errors of PushLog::Append and TablePartition::Push.
  absl::StatusOr<PushOutcome> Push(const LoggedPush& push,
                                   const std::vector<PartitionRange>& ranges);

  // Calls `save` with the number of a log that begins at this moment, to write
  // the rows to a file, whose path it returns. A later recovery begins with
  // that file, or, if that is an increment of a file which is no longer kept
  // for the recovery, as it would have without. Without logs the number is 0.
  // Call by one thread at a time.
  absl::StatusOr<TableFileSize> Save(
      absl::FunctionRef<absl::StatusOr<TableFileSize>(
          const SparseTable& table, int64_t log, std::string& path)>
          save);

 private:
  class Recovery;

  LoggedTable(std::unique_ptr<SparseTable> table,
              const RecoveryDirectory* directory, PushLogging logging);

  // Keeps a file of rows, and what a recovery needs if it is damaged.
  absl::Status KeepRows(int64_t number, const std::string& path);
  static absl::StatusOr<std::shared_ptr<LoggedTable>> RecoverOne(
      const RecoveryDirectory& directory, const std::string& name,
      const RecoveryDirectory::Numbers& numbers, PushLogging logging,
      const SparseTableOptions& options);

  TableFileInfo Info(int64_t log) const;
  // Ends the current log and begins the next one, when no push is under way.
  absl::Status BeginLog(int64_t number);
  absl::StatusOr<PushOutcome> Apply(const LoggedPush& push,
                                    const std::vector<PartitionRange>& ranges,
                                    Admission admission);
  // Push with Retention options.
  absl::StatusOr<PushOutcome> PushDecided(
      const LoggedPush& push, const std::vector<PartitionRange>& ranges);
  // A push with a clock was applied.
  void CountPush(const LoggedPush& push);
  // Applies a push of a log.
  absl::Status Replay(const LoggedPush& push);

  const std::unique_ptr<SparseTable> table_;
  const RecoveryDirectory* const directory_;
  const PushLogging logging_;
  PushObserver observer_;
  TableStatistics statistics_;
  // Replaced only while the table is recovered.
  std::unique_ptr<WorkerClocks> clocks_;
  // Held while an event is logged and applied, so that the log has the events
  // in their order. Taken after mutex_.
  async::Mutex events_mutex_;

  // Held shared from the logging of a push until it is applied, so that the log
  // before a snapshot has only pushes that the snapshot contains; exclusively
  // by PushDecided.
  std::shared_mutex mutex_;
  std::unique_ptr<PushLog> log_;
  int64_t number_ = 0;
  // The log at which the last file of rows begins, and the files that are kept.
  int64_t last_rows_ = 0;
  RowsFiles rows_files_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_LOGGED_TABLE_H_
