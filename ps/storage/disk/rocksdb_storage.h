// Rows on disk in RocksDB.

#ifndef HAWSER_PS_STORAGE_DISK_ROCKSDB_STORAGE_H_
#define HAWSER_PS_STORAGE_DISK_ROCKSDB_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/storage/disk/row_disk.h"

namespace rocksdb {
class Cache;
class WriteBufferManager;
}  // namespace rocksdb

namespace hawser::ps {

// Databases in DIRECTORY/WORKER, one for each table, without a write-ahead log:
// they end with this process, whatever ends it. Beside a filter of 10 bits per
// row, all of them take at most kMemoryBytes of memory together, roughly.
//
// Two processes must not use it under the same name at a time: the second one
// fails with kUnavailable while a database of the first one is open.
class RocksDbStorage final : public DiskStorage {
 public:
  static constexpr size_t kMemoryBytes = size_t{512} << 20;

  // The directory is created if it does not exist.
  explicit RocksDbStorage(std::string directory);
  ~RocksDbStorage() override;

  absl::Status Open(const std::string& worker) override;
  absl::StatusOr<std::unique_ptr<RowDisk>> Create(const std::string& table,
                                                  size_t row_bytes) override;

 private:
  const std::string directory_;
  // Of all databases: rows that were read, and rows that are not in files yet.
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::shared_ptr<rocksdb::WriteBufferManager> write_buffers_;
  // Set by Open.
  std::string worker_directory_;
  // Of the databases that were created.
  std::atomic<int64_t> next_number_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_DISK_ROCKSDB_STORAGE_H_
