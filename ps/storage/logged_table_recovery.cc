// Tables of a server that starts again: LoggedTable::Recover.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/table_files.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot/rows_files.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

absl::StatusOr<std::unique_ptr<SparseTable>> NewTable(
    const TableFileInfo& info, SparseTableOptions options) {
  options.num_partitions = static_cast<int>(info.num_partitions);
  options.shards = info.shards;
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> table,
                   SparseTable::Create(info.spec, options));
  table->AdvanceTime(info.time);
  table->AdvanceClock(info.clock);
  return table;
}

// Adds the files whose header can be read.
RowsFiles FindRowsFiles(const RecoveryDirectory& directory,
                        const std::string& name,
                        const std::set<int64_t>& numbers) {
  RowsFiles files;
  for (const int64_t number : numbers) {
    const auto info = ReadTableFileInfo(directory.RowsPath(name, number));
    if (info.ok()) files.Add(number, *info);
  }
  return files;
}

// The rows of file `number`, with those of the files that it continues.
absl::StatusOr<std::unique_ptr<SparseTable>> ReadRows(
    const RecoveryDirectory& directory, const std::string& name, int64_t number,
    const RowsFiles& files, const SparseTableOptions& options) {
  const std::string path = directory.RowsPath(name, number);
  ASSIGN_OR_RETURN(const TableFileInfo info, ReadTableFileInfo(path));
  std::vector<std::string> paths;
  for (const int64_t link : files.ChainOf(number)) {
    paths.push_back(directory.RowsPath(name, link));
  }
  if (paths.empty()) {
    return absl::DataLossError(
        absl::StrCat(path, " is an increment of snapshot \"", info.base->name,
                     "\", whose file is missing or damaged"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> table, NewTable(info, options));
  RETURN_IF_ERROR(ReadTableFiles(paths, *table, ReadFor::kRecovery));
  return table;
}

}  // namespace

// Applies the records of a log.
class LoggedTable::Recovery final : public PushLog::Replayer {
 public:
  Recovery(LoggedTable& logged, std::string rows_path)
      : logged_(logged), rows_path_(std::move(rows_path)) {}

  // Of the next log, for errors.
  void set_path(std::string path) { path_ = std::move(path); }

  absl::Status Apply(const TableFileInfo& info,
                     const LoggedPush& push) override {
    RETURN_IF_ERROR(CheckTable(info));
    absl::Status status = logged_.Replay(push);
    FinishClocks();
    // Keys that are not in order, or not of these shards.
    if (absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status)) {
      return Damaged(status);
    }
    return status;
  }

  absl::Status Apply(const TableFileInfo& info,
                     const v1::TableClocks& clocks) override {
    RETURN_IF_ERROR(CheckTable(info));
    const Consistency consistency = info.spec.consistency;
    if (!consistency.clocked()) return Damaged(absl::DataLossError("clocks"));
    auto read = WorkerClocks::FromProto(consistency, clocks);
    if (!read.ok()) return Damaged(read.status());
    logged_.clocks_ = *std::move(read);
    FinishClocks();
    return absl::OkStatus();
  }

  absl::Status Apply(const TableFileInfo& info,
                     const v1::ClockEvent& event) override {
    RETURN_IF_ERROR(CheckTable(info));
    if (logged_.clocks_ == nullptr) {
      return Damaged(absl::DataLossError("an event of a clock"));
    }
    const absl::StatusOr<bool> changes = logged_.clocks_->Check(event);
    if (!changes.ok()) return Damaged(changes.status());
    if (*changes) logged_.clocks_->Apply(event);
    FinishClocks();
    return absl::OkStatus();
  }

 private:
  absl::Status CheckTable(const TableFileInfo& info) const {
    if (info.spec == logged_.table_->spec() &&
        info.shards == logged_.table_->shards()) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat(path_, " is of another table than ", rows_path_));
  }

  absl::Status Damaged(const absl::Status& status) const {
    return absl::DataLossError(
        absl::StrCat(path_, ": ", std::string(status.message())));
  }

  // Pushes count as arrived only once they are in the log, applied.
  void FinishClocks() const {
    WorkerClocks* const clocks = logged_.clocks_.get();
    if (clocks == nullptr) return;
    while (clocks->ClockToApply().has_value()) clocks->FinishClock();
  }

  LoggedTable& logged_;
  const std::string rows_path_;
  std::string path_;
};

absl::Status LoggedTable::Replay(const LoggedPush& push) {
  table_->AdvanceTime(push.time);
  RETURN_IF_ERROR(table_->RemoveRows(push.removed, push.id));
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table_->SplitOrdered(push.keys));
  const absl::Status status = Apply(push, ranges, Admission::kDecided).status();
  // So old that the rows contain it.
  return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<std::shared_ptr<LoggedTable>>> LoggedTable::Recover(
    const RecoveryDirectory& directory, PushLogging logging,
    const SparseTableOptions& options) {
  RETURN_IF_ERROR(directory.Open());
  ASSIGN_OR_RETURN(const auto tables, directory.List());
  std::vector<std::shared_ptr<LoggedTable>> recovered;
  for (const auto& [name, numbers] : tables) {
    ASSIGN_OR_RETURN(std::shared_ptr<LoggedTable> table,
                     RecoverOne(directory, name, numbers, logging, options));
    // Null if the table was not complete before its server ended.
    if (table != nullptr) recovered.push_back(std::move(table));
  }
  return recovered;
}

// Steps:
//   1. Read the rows of the newest file that is not damaged.
//   2. Apply the logs from that file's number on, of which none may be missing.
//      Pushes that the rows contain are recognised and left out.
//   3. Begin the next log.
absl::StatusOr<std::shared_ptr<LoggedTable>> LoggedTable::RecoverOne(
    const RecoveryDirectory& directory, const std::string& name,
    const RecoveryDirectory::Numbers& numbers, PushLogging logging,
    const SparseTableOptions& options) {
  if (numbers.rows.empty()) return nullptr;
  std::unique_ptr<SparseTable> table;
  int64_t first = 0;
  absl::Status damage;
  const RowsFiles files = FindRowsFiles(directory, name, numbers.rows);
  const std::vector<int64_t> newest_first(numbers.rows.rbegin(),
                                          numbers.rows.rend());
  for (int64_t number : newest_first) {
    first = number;
    absl::StatusOr<std::unique_ptr<SparseTable>> read =
        ReadRows(directory, name, first, files, options);
    if (read.ok()) {
      table = *std::move(read);
      break;
    }
    damage.Update(read.status());
  }
  if (table == nullptr) return damage;
  if (!damage.ok()) {
    telemetry::Log(
        telemetry::LogSeverity::kWarning,
        absl::StrCat("table \"", name, "\" is recovered from an older file: ",
                     std::string(damage.message())));
  }
  std::shared_ptr<LoggedTable> logged(
      new LoggedTable(std::move(table), &directory, logging));
  Recovery recovery(*logged, directory.RowsPath(name, first));
  int64_t last = first - 1;
  for (auto it = numbers.logs.lower_bound(first); it != numbers.logs.end();
       ++it) {
    if (*it != last + 1) {
      return absl::DataLossError(absl::StrCat(
          "the log ", directory.LogPath(name, last + 1), " is missing"));
    }
    last = *it;
    recovery.set_path(directory.LogPath(name, last));
    RETURN_IF_ERROR(PushLog::Replay(directory.LogPath(name, last), recovery));
  }
  logged->last_rows_ = first;
  logged->rows_files_ = files;
  RETURN_IF_ERROR(logged->BeginLog(last + 1));
  return logged;
}

}  // namespace hawser::ps
