// Files of rows from which a table is recovered.

#ifndef HAWSER_PS_STORAGE_SNAPSHOT_ROWS_FILES_H_
#define HAWSER_PS_STORAGE_SNAPSHOT_ROWS_FILES_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "ps/storage/snapshot/table_file.h"

namespace hawser::ps {

// The files of rows of one table in a RecoveryDirectory, by their numbers, and
// the order in which increments continue others. Thread-compatible.
class RowsFiles {
 public:
  void Add(int64_t number, const TableFileInfo& info) {
    files_[number] = {info.snapshot,
                      info.base.has_value() ? info.base->snapshot : 0};
  }

  // The numbers of the files with the rows of file `number`, which is the last
  // of them. Empty: one is missing.
  std::vector<int64_t> ChainOf(int64_t number) const;

  // Forgets the other files.
  void Keep(const std::set<int64_t>& numbers);

 private:
  struct File {
    uint64_t snapshot = 0;
    // 0: it has all rows.
    uint64_t base = 0;
  };
  std::map<int64_t, File> files_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SNAPSHOT_ROWS_FILES_H_
