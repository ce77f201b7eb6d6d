// The files from which a server that was started again has its tables.

#ifndef HAWSER_PS_STORAGE_RECOVERY_DIRECTORY_H_
#define HAWSER_PS_STORAGE_RECOVERY_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::ps {

// For each table, numbered logs of pushes ("TABLE.NUMBER.log", '+' for '/' in
// the name of the table) and files with the rows at the beginning of a log
// ("TABLE.NUMBER.rows"). The directory belongs to one server.
//
// Thread-compatible; for each table, for one thread at a time.
class RecoveryDirectory {
 public:
  // The numbers of a table's files.
  struct Numbers {
    std::set<int64_t> logs;
    std::set<int64_t> rows;
  };

  explicit RecoveryDirectory(std::string path) : path_(std::move(path)) {}

  // Creates the directory if it does not exist.
  absl::Status Open() const;
  // By the name of the table.
  absl::StatusOr<std::map<std::string, Numbers>> List() const;

  std::string LogPath(const std::string& table, int64_t number) const;
  std::string RowsPath(const std::string& table, int64_t number) const;

  // Removes logs of the table with lower numbers than `first_log`, and files of
  // rows with other numbers than `rows`.
  absl::Status Keep(const std::string& table, int64_t first_log,
                    const std::set<int64_t>& rows) const;

 private:
  const std::string path_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RECOVERY_DIRECTORY_H_
