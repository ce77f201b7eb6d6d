// Files with the rows of a table.
//
// A file begins with "HWSRTBL1" and consists of records (ps/storage/record.h):
// a TableFileHeader, for each partition a TablePartitionHeader and its rows in
// blocks of about 4 MiB, and a TableFileEnd.
//
// The file of an increment has only what changed since an earlier snapshot, its
// base: in each partition the keys that have lost their rows, then the rows
// that were created or changed. A key may be among both: its row is a new one.
// Its base may be an increment as well; a chain of files begins with one that
// has all rows.

#ifndef HAWSER_PS_STORAGE_SNAPSHOT_TABLE_FILE_H_
#define HAWSER_PS_STORAGE_SNAPSHOT_TABLE_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::v1 {
class TableFileHeader;
}  // namespace hawser::v1

namespace hawser::ps {

struct TableFileSize {
  int64_t rows = 0;
  int64_t bytes = 0;
};

// The snapshot that an increment continues.
struct SnapshotBase {
  // Increments in a chain, at most.
  static constexpr int64_t kMaxIncrements = 64;

  std::string name = {};
  // TableFileInfo::snapshot of its files.
  uint64_t snapshot = 0;
  // Number of increments up to the one that continues it, from 1 on.
  int64_t increments = 0;

  friend bool operator==(const SnapshotBase&, const SnapshotBase&) = default;
};

struct TableFileInfo {
  // Files of one snapshot have the same number.
  uint64_t snapshot = 0;
  TableSpec spec;
  ShardRange shards;
  int64_t num_partitions = 0;
  // The number of the log with the first pushes that the file does not contain;
  // 0: pushes were not logged.
  int64_t log = 0;
  // SparseTable::time() to which the rows refer.
  int64_t time = 0;
  // SparseTable::clock().
  int64_t clock = 0;
  // Of an increment.
  std::optional<SnapshotBase> base = std::nullopt;
};

v1::TableFileHeader ToProto(const TableFileInfo& info);
// kInvalidArgument: the description of the table or its clock is invalid.
absl::StatusOr<TableFileInfo> FromProto(const v1::TableFileHeader& proto);

struct TableFileOptions {
  // TableFileInfo::snapshot. Unless it is 0, changes from then on are
  // remembered, also if the file cannot be written: others may be based on it.
  uint64_t snapshot = 0;
  // TableFileInfo::log.
  int64_t log = 0;
  // For an increment.
  std::optional<SnapshotBase> base = std::nullopt;
};

// Writes the rows of `table` to `path`, which appears complete or not at all.
// The rows of a partition are those of one moment, with the pushes that they
// contain; pulls and pushes of that partition wait while they are copied.
//
//   kFailedPrecondition  the changes since `base` are not known.
//   Errors of the file system, which name the file.
absl::StatusOr<TableFileSize> WriteTableFile(const SparseTable& table,
                                             const TableFileOptions& options,
                                             const std::string& path);

// Reads the beginning of a file.
//
//   kDataLoss  the file is damaged; names file, place and damage.
absl::StatusOr<TableFileInfo> ReadTableFileInfo(const std::string& path);

// The table that files are read for.
enum class ReadFor {
  // A new one.
  kRestore,
  // The one that they were saved from, which has its time: afterwards it knows
  // what changes from these snapshots on.
  kRecovery,
};

// Reads a file with all rows, and the increments that follow it, of which each
// continues the one before. Inserts the rows that are in shards of `table`, and
// checks the whole files. The table also gets the pushes that the rows contain,
// in whatever partitions it holds them. Rows are as old as they were when the
// last file was written, and the table's clock is not before that of this file.
// After an error the table has some of the rows.
//
//   kDataLoss         as above; or a file does not continue the one before:
//                     names both.
//   kInvalidArgument  a file is of a table with another description.
//   Errors of RowDisk.
absl::Status ReadTableFiles(std::span<const std::string> paths,
                            SparseTable& table,
                            ReadFor use = ReadFor::kRestore);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SNAPSHOT_TABLE_FILE_H_
