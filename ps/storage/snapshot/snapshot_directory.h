// The files of the snapshots of one server.

#ifndef HAWSER_PS_STORAGE_SNAPSHOT_SNAPSHOT_DIRECTORY_H_
#define HAWSER_PS_STORAGE_SNAPSHOT_SNAPSHOT_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"

namespace hawser::ps {

// A directory with one sub-directory per snapshot, with one file per table and
// server: "TABLE.FIRST-COUNT.rows", with the shards in the file, and '+' for
// '/' in the name of the table. Servers may share it, or have one each.
//
// Thread-safe.
class SnapshotDirectory {
 public:
  // An empty path: there are no snapshots, and all calls fail with
  // kFailedPrecondition.
  explicit SnapshotDirectory(std::string path) : path_(std::move(path)) {}

  // Writes the rows of `table` to a file, and sets `path` to its path; replaces
  // the file of an earlier call.
  //
  //   kInvalidArgument  `snapshot` is not 1 to 200 letters, digits, '_', '-'
  //                     and '.', not beginning with '.', or is its own base.
  //   Errors of WriteTableFile.
  absl::StatusOr<TableFileSize> Save(const SparseTable& table,
                                     const std::string& snapshot,
                                     const TableFileOptions& options,
                                     std::string& path) const;

  // The snapshot `base` of the shards of `table`, for an increment that
  // continues it.
  //
  //   kInvalidArgument     as above.
  //   kNotFound            the directory does not have it.
  //   kFailedPrecondition  the table does not know what changed since, or the
  //                        chain of increments is too long: a snapshot with all
  //                        rows is needed.
  //   kDataLoss            its file is damaged.
  absl::StatusOr<SnapshotBase> BaseOf(const SparseTable& table,
                                      const std::string& base) const;

  // Whether `snapshot` has none of the shards of `table`, apart from files of
  // the same `id`. kAlreadyExists: names a file that has some. kInvalidArgument
  // as above; kDataLoss: a file is damaged.
  absl::Status CheckNew(const SparseTable& table, const std::string& snapshot,
                        uint64_t id) const;

  // Returns a table with the shards of a server, from the files of any number
  // of servers, and of the snapshots that an increment continues. `options` has
  // the limits and the clock of the table.
  //
  //   kInvalidArgument  as above, or the table has no such place.
  //   kNotFound         the directory lacks files with some of the shards, or a
  //                     file that an increment continues; names both.
  //   kDataLoss         a file is damaged, or files are of different snapshots
  //                     or tables; names the files.
  absl::StatusOr<std::unique_ptr<SparseTable>> Restore(
      const std::string& table, const std::string& snapshot, ServerPlace place,
      SparseTableOptions options) const;

 private:
  absl::StatusOr<std::string> PathOf(const std::string& snapshot) const;
  // The path of the file with `shards` of a table.
  absl::StatusOr<std::string> FileOf(const std::string& snapshot,
                                     const std::string& table,
                                     ShardRange shards) const;
  // The files that lead to `path`, in their order, with their headers.
  struct Chain {
    std::vector<std::string> paths;
    std::vector<TableFileInfo> infos;
  };
  absl::StatusOr<Chain> ChainOf(const std::string& path,
                                const TableFileInfo& info) const;

  const std::string path_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SNAPSHOT_SNAPSHOT_DIRECTORY_H_
