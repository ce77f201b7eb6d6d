// Interface of the disk for rows that do not fit into memory.

#ifndef HAWSER_PS_STORAGE_DISK_ROW_DISK_H_
#define HAWSER_PS_STORAGE_DISK_ROW_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::ps {

// The hashes (HashKey) from `first` to `last`.
struct HashRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
};

// Rows of one table on the disk of one server, by key, for as long as this
// object lives: the table is recovered from its files and logs.
//
// Thread-safe. All rows have the same number of bytes. Errors: kDataLoss, the
// disk has damaged rows; kResourceExhausted, it is full; kUnavailable, another
// failure. They name the place.
class RowDisk {
 public:
  // The rows at one moment. The disk must outlive it.
  class Snapshot {
   public:
    virtual ~Snapshot() = default;
    // Calls visit(key, row) for the rows in `range`, in the order of the hashes
    // of their keys, until it returns an error, which is then returned.
    virtual absl::Status ForEach(
        HashRange range,
        absl::FunctionRef<absl::Status(uint64_t key, const std::byte* row)>
            visit) const = 0;
  };

  virtual ~RowDisk() = default;

  // Calls found(i, row) for each keys[i] that has a row, in any order.
  virtual absl::Status Read(
      std::span<const uint64_t> keys,
      absl::FunctionRef<void(size_t i, const std::byte* row)> found) const = 0;
  // Writes the rows of `keys`, one after the other in `rows`; replaces those
  // that exist. Removes the rows of `removed`, other keys, that exist. After an
  // error nothing has changed.
  virtual absl::Status Write(std::span<const uint64_t> keys,
                             std::span<const std::byte> rows,
                             std::span<const uint64_t> removed) = 0;
  virtual std::unique_ptr<Snapshot> TakeSnapshot() const = 0;
};

// The disk of a server. Thread-safe.
class DiskStorage {
 public:
  virtual ~DiskStorage() = default;

  // Prepares the disk for worker `name`, and removes rows that an earlier one
  // has left. Call first.
  virtual absl::Status Open(const std::string& worker) = 0;
  // Space for the rows of a table, empty also if there is a table of this name.
  virtual absl::StatusOr<std::unique_ptr<RowDisk>> Create(
      const std::string& table, size_t row_bytes) = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_DISK_ROW_DISK_H_
