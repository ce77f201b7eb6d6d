// The log of the pushes to the rows of one server.

#ifndef HAWSER_PS_STORAGE_PUSH_LOG_H_
#define HAWSER_PS_STORAGE_PUSH_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "fs/unique_fd.h"
#include "ps/storage/record.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"
#include "telemetry/duration_histogram.h"

namespace hawser::v1 {
class ClockEvent;
class TableClocks;
}  // namespace hawser::v1

namespace hawser::ps {

// When a push that is acknowledged is safe.
enum class PushLogging {
  // Not before the next snapshot.
  kOff,
  // After the end of the process, but not of the machine: the push was written
  // to the file.
  kWrite,
  // After the end of the machine: the file was synced.
  kSync,
};

// The change that a push makes.
enum class PushKind {
  // Updates rows by the table's rule.
  kUpdate,
  // Makes them new rows with given weights.
  kAssign,
  // The same for those that do not exist.
  kAssignMissing,
};

// A push as it is logged.
struct LoggedPush {
  PushId id;
  PushRate rate;
  // Distinct, in the order of their hashes.
  std::span<const uint64_t> keys;
  // Gradients or weights, [keys, width].
  std::span<const float> values;
  PushKind kind = PushKind::kUpdate;
  // SparseTable::time() of the push.
  int64_t time = 0;
  // Keys whose rows were removed before it, in any order.
  std::span<const uint64_t> removed = {};
  // Not joined if the push has no clock.
  WorkerTime worker_time = {};
};

// Applies a push whose keys are all of this partition. Without a step of its
// own, it has that of its clock. Errors of TablePartition::Push.
absl::StatusOr<PushOutcome> ApplyPush(TablePartition& partition,
                                      const LoggedPush& push,
                                      Admission admission = Admission::kDecide);

// A file of pushes: "HWSRLOG1", a TableFileHeader, for a table with a clock the
// TableClocks at its beginning, and a record for each push or ClockEvent
// (ps/storage/record.h). The kind of a push's record is that of the push:
// client, sequence, number of the client's join, its clock, learning rate (NaN:
// unset), step (-1: unset), time, number of removed keys and of keys, each in 8
// bytes, then removed keys, keys and values.
//
// Thread-safe.
class PushLog {
 public:
  // Begins the file `path`, which must not exist, for the table of `info`.
  // Records how long syncs take in `sync_durations`, which may be null.
  // Errors of the file system, which name the file; it then does not exist.
  static absl::StatusOr<std::unique_ptr<PushLog>> Create(
      const std::string& path, const TableFileInfo& info, PushLogging logging,
      telemetry::DurationHistogram* sync_durations);

  // Writes a push, and syncs it if that was asked for. After an error the file
  // is as before, or refuses all further pushes.
  //
  //   kResourceExhausted  the disk is full, or the push is larger than a
  //   record. kUnavailable        the file cannot be written; names file and
  //   cause.
  absl::Status Append(const LoggedPush& push);
  // The same for the clocks at the beginning of the log, and their changes.
  absl::Status Append(const v1::TableClocks& clocks);
  absl::Status Append(const v1::ClockEvent& event);

  // Takes the records of a log, with the table that the log is for. Errors end
  // the replay.
  class Replayer {
   public:
    virtual ~Replayer() = default;
    virtual absl::Status Apply(const TableFileInfo& info,
                               const LoggedPush& push) = 0;
    virtual absl::Status Apply(const TableFileInfo& info,
                               const v1::TableClocks& clocks) = 0;
    virtual absl::Status Apply(const TableFileInfo& info,
                               const v1::ClockEvent& event) = 0;
  };

  // Gives the records of the file `path` to `replayer`, in order. A last record
  // that is incomplete was not acknowledged and is left out; so is the whole
  // file if its header is incomplete.
  //
  // kDataLoss: another record is damaged. Errors of `replayer`.
  static absl::Status Replay(const std::string& path, Replayer& replayer);

 private:
  PushLog(std::string path, fs::UniqueFd file, PushLogging logging,
          telemetry::DurationHistogram* sync_durations)
      : path_(std::move(path)),
        file_(std::move(file)),
        logging_(logging),
        sync_durations_(sync_durations) {}

  absl::Status AppendRecord(RecordKind kind,
                            std::span<const std::span<const std::byte>> body);
  absl::Status Write(std::span<const std::span<const std::byte>> parts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Syncs the file, and records the time.
  int Sync() const;
  // Makes the name of a new file permanent.
  absl::Status SyncDirectory() const;
  absl::Status Failed(const char* operation, int error) const;

  const std::string path_;
  const fs::UniqueFd file_;
  const PushLogging logging_;
  telemetry::DurationHistogram* const sync_durations_;
  async::Mutex mutex_;
  // Bytes of complete records.
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set once an incomplete record could not be cut off.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PUSH_LOG_H_
