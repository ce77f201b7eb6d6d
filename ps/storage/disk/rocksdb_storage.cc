#include "ps/storage/disk/rocksdb_storage.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/key_hash.h"

namespace hawser::ps {
namespace {

constexpr int kFilterBitsPerRow = 10;

absl::Status ToStatus(const rocksdb::Status& status, const std::string& path) {
  if (status.ok()) return absl::OkStatus();
  const std::string message =
      absl::StrCat("rows in ", path, ": ", status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

// A key in the database: its hash, so that the rows of a partition are next to
// each other.
class StoredKey {
 public:
  explicit StoredKey(uint64_t hash) {
    for (int i = 0; i < 8; ++i) {
      bytes_[i] = static_cast<char>(hash >> (56 - 8 * i));
    }
  }
  rocksdb::Slice slice() const { return {bytes_, sizeof(bytes_)}; }

  static uint64_t HashOf(const rocksdb::Slice& stored) {
    uint64_t hash = 0;
    for (size_t i = 0; i < stored.size(); ++i) {
      hash = hash << 8 | static_cast<uint8_t>(stored[i]);
    }
    return hash;
  }

 private:
  char bytes_[8];
};

const std::byte* Bytes(const rocksdb::Slice& slice) {
  return reinterpret_cast<const std::byte*>(slice.data());
}

class RocksDbSnapshot final : public RowDisk::Snapshot {
 public:
  RocksDbSnapshot(rocksdb::DB& db, const std::string& path, size_t row_bytes)
      : db_(db),
        path_(path),
        row_bytes_(row_bytes),
        snapshot_(db.GetSnapshot()) {}
  ~RocksDbSnapshot() override { db_.ReleaseSnapshot(snapshot_); }

  absl::Status ForEach(
      HashRange range,
      absl::FunctionRef<absl::Status(uint64_t, const std::byte*)> visit)
      const override {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_;
    const std::unique_ptr<rocksdb::Iterator> rows(db_.NewIterator(options));
    for (rows->Seek(StoredKey(range.first).slice()); rows->Valid();
         rows->Next()) {
      const uint64_t hash = StoredKey::HashOf(rows->key());
      if (hash > range.last) break;
      if (rows->value().size() != row_bytes_) {
        return absl::DataLossError(
            absl::StrCat("rows in ", path_, ": one has ", rows->value().size(),
                         " bytes instead of ", row_bytes_));
      }
      RETURN_IF_ERROR(visit(KeyWithHash(hash), Bytes(rows->value())));
    }
    return ToStatus(rows->status(), path_);
  }

 private:
  rocksdb::DB& db_;
  const std::string& path_;
  const size_t row_bytes_;
  const rocksdb::Snapshot* const snapshot_;
};

class RocksDbRows final : public RowDisk {
 public:
  RocksDbRows(std::unique_ptr<rocksdb::DB> db, std::string path,
              size_t row_bytes)
      : db_(std::move(db)), path_(std::move(path)), row_bytes_(row_bytes) {}
  ~RocksDbRows() override {
    db_.reset();
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  absl::Status Read(
      std::span<const uint64_t> keys,
      absl::FunctionRef<void(size_t, const std::byte*)> found) const override {
    if (keys.empty()) return absl::OkStatus();
    std::vector<StoredKey> stored;
    std::vector<rocksdb::Slice> slices;
    stored.reserve(keys.size());
    for (const uint64_t key : keys) {
      stored.emplace_back(HashKey(key));
      slices.push_back(stored.back().slice());
    }
    std::vector<rocksdb::PinnableSlice> rows(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(),
                  keys.size(), slices.data(), rows.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].IsNotFound()) continue;
      RETURN_IF_ERROR(ToStatus(statuses[i], path_));
      if (rows[i].size() != row_bytes_) {
        return absl::DataLossError(
            absl::StrCat("rows in ", path_, ": that of key ", keys[i], " has ",
                         rows[i].size(), " bytes instead of ", row_bytes_));
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) found(i, Bytes(rows[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Write(std::span<const uint64_t> keys,
                     std::span<const std::byte> rows,
                     std::span<const uint64_t> removed) override {
    if (keys.empty() && removed.empty()) return absl::OkStatus();
    rocksdb::WriteBatch batch;
    for (const uint64_t key : removed) {
      RETURN_IF_ERROR(
          ToStatus(batch.Delete(StoredKey(HashKey(key)).slice()), path_));
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = rows.subspan(i * row_bytes_, row_bytes_);
      RETURN_IF_ERROR(ToStatus(
          batch.Put(StoredKey(HashKey(keys[i])).slice(),
                    {reinterpret_cast<const char*>(row.data()), row.size()}),
          path_));
    }
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return ToStatus(db_->Write(options, &batch), path_);
  }

  std::unique_ptr<Snapshot> TakeSnapshot() const override {
    return std::make_unique<RocksDbSnapshot>(*db_, path_, row_bytes_);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  const std::string path_;
  const size_t row_bytes_;
};

rocksdb::Options DatabaseOptions(
    const std::shared_ptr<rocksdb::Cache>& cache,
    const std::shared_ptr<rocksdb::WriteBufferManager>& write_buffers) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  // Rows are numbers, which do not compress.
  options.compression = rocksdb::kNoCompression;
  options.avoid_flush_during_shutdown = true;
  options.write_buffer_manager = write_buffers;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerRow));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

RocksDbStorage::RocksDbStorage(std::string directory)
    : directory_(std::move(directory)),
      cache_(rocksdb::NewLRUCache(kMemoryBytes / 2)),
      write_buffers_(
          std::make_shared<rocksdb::WriteBufferManager>(kMemoryBytes / 2)) {}

RocksDbStorage::~RocksDbStorage() = default;

absl::Status RocksDbStorage::Open(const std::string& worker) {
  worker_directory_ = absl::StrCat(directory_, "/", worker);
  std::error_code error;
  std::filesystem::remove_all(worker_directory_, error);
  if (!error) std::filesystem::create_directories(worker_directory_, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot create the directory ",
                                             worker_directory_, ": ",
                                             error.message()));
}

absl::StatusOr<std::unique_ptr<RowDisk>> RocksDbStorage::Create(
    const std::string& table, size_t row_bytes) {
  std::string path = absl::StrCat(worker_directory_, "/",
                                  absl::StrReplaceAll(table, {{"/", "+"}}), ".",
                                  next_number_++);
  rocksdb::DB* db = nullptr;
  RETURN_IF_ERROR(ToStatus(
      rocksdb::DB::Open(DatabaseOptions(cache_, write_buffers_), path, &db),
      path));
  return std::make_unique<RocksDbRows>(std::unique_ptr<rocksdb::DB>(db),
                                       std::move(path), row_bytes);
}

}  // namespace hawser::ps
