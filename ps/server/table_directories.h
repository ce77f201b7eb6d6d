// The directories of the tables of a server whose pushes are logged.

#ifndef HAWSER_PS_SERVER_TABLE_DIRECTORIES_H_
#define HAWSER_PS_SERVER_TABLE_DIRECTORIES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/storage/recovery_directory.h"

namespace hawser::ps {

// A directory for each version of each table: "TABLE.VERSION", with '+' for '/'
// in the name of the table. Thread-safe. Errors are those of the file system,
// and name the path.
class TableDirectories {
 public:
  explicit TableDirectories(std::string path) : path_(std::move(path)) {}

  // Creates the directory of directories, and ends removals that were
  // interrupted.
  absl::Status Open() const;
  // The versions of each table.
  absl::StatusOr<std::map<std::string, std::set<int64_t>>> List() const;

  // Creates the directory of a version that is new: what is left of an earlier
  // attempt is removed.
  absl::StatusOr<std::unique_ptr<RecoveryDirectory>> Create(
      const std::string& table, int64_t version) const;
  // One that exists.
  std::unique_ptr<RecoveryDirectory> Find(const std::string& table,
                                          int64_t version) const;

  // Removes a version. The end of the process or of the machine leaves either
  // all of it or, after the return for good, nothing.
  absl::Status Remove(const std::string& table, int64_t version) const;

 private:
  std::string PathOf(const std::string& table, int64_t version) const;
  absl::Status Sync() const;

  const std::string path_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_TABLE_DIRECTORIES_H_
