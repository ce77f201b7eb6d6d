// Files with the rows of a table.
//
// A file begins with "HWSRTBL1" and consists of records (ps/storage/record.h):
// a TableFileHeader, for each partition a TablePartitionHeader and its rows in
// blocks of about 4 MiB, and a TableFileEnd.

#ifndef HAWSER_PS_STORAGE_TABLE_FILE_H_
#define HAWSER_PS_STORAGE_TABLE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/table_files.pb.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

struct TableFileSize {
  int64_t rows = 0;
  int64_t bytes = 0;
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
};

v1::TableFileHeader ToProto(const TableFileInfo& info);
// kInvalidArgument: the description of the table or its clock is invalid.
absl::StatusOr<TableFileInfo> FromProto(const v1::TableFileHeader& proto);

// Writes the rows of `table` to `path`, which appears complete or not at all.
// The rows of a partition are those of one moment, with the pushes that they
// contain; pulls and pushes of that partition wait while they are copied.
// Errors of the file system name the file.
absl::StatusOr<TableFileSize> WriteTableFile(const SparseTable& table,
                                             uint64_t snapshot, int64_t log,
                                             const std::string& path);

// Reads the beginning of a file.
//
//   kDataLoss  the file is damaged; names file, place and damage.
absl::StatusOr<TableFileInfo> ReadTableFileInfo(const std::string& path);

// Inserts the rows of the file that are in shards of `table`, and checks the
// whole file. The table also gets the pushes that the rows contain, in whatever
// partitions it holds them. Rows are as old as they were when the file was
// written, and the table's clock is not before that of the file. After an error
// the table has some of the rows.
//
//   kDataLoss         as above.
//   kInvalidArgument  the file is of a table with another description.
absl::Status ReadTableFile(const std::string& path, SparseTable& table);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_FILE_H_
