// Disk storage that fails when a test says so.

#ifndef HAWSER_PS_TESTING_FAILING_DISK_H_
#define HAWSER_PS_TESTING_FAILING_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"

namespace hawser::ps {

// Changes of its rows fail with kResourceExhausted while it is full; all else
// is done by another disk, which must outlive it.
class FailingDisk final : public DiskStorage {
 public:
  explicit FailingDisk(DiskStorage& disk) : disk_(disk) {}

  void set_full(bool full) { full_ = full; }

  absl::Status Open(const std::string& worker) override {
    return disk_.Open(worker);
  }
  absl::StatusOr<std::unique_ptr<RowDisk>> Create(const std::string& table,
                                                  size_t row_bytes) override {
    ASSIGN_OR_RETURN(std::unique_ptr<RowDisk> rows,
                     disk_.Create(table, row_bytes));
    return std::make_unique<Rows>(std::move(rows), full_);
  }

 private:
  class Rows final : public RowDisk {
   public:
    Rows(std::unique_ptr<RowDisk> rows, const bool& full)
        : rows_(std::move(rows)), full_(full) {}

    absl::Status Read(std::span<const uint64_t> keys,
                      absl::FunctionRef<void(size_t, const std::byte*)> found)
        const override {
      return rows_->Read(keys, found);
    }
    absl::Status Write(std::span<const uint64_t> keys,
                       std::span<const std::byte> rows,
                       std::span<const uint64_t> removed) override {
      if (full_ && !(keys.empty() && removed.empty())) {
        return absl::ResourceExhaustedError("the disk is full");
      }
      return rows_->Write(keys, rows, removed);
    }
    std::unique_ptr<Snapshot> TakeSnapshot() const override {
      return rows_->TakeSnapshot();
    }

   private:
    const std::unique_ptr<RowDisk> rows_;
    const bool& full_;
  };

  DiskStorage& disk_;
  bool full_ = false;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_FAILING_DISK_H_
