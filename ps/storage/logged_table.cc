#include "ps/storage/logged_table.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_file.h"
#include "ps/storage/table_partition.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

absl::StatusOr<std::unique_ptr<SparseTable>> NewTable(
    const TableFileInfo& info) {
  return SparseTable::Create(
      info.spec, {.num_partitions = static_cast<int>(info.num_partitions),
                  .shards = info.shards});
}

absl::StatusOr<std::unique_ptr<SparseTable>> ReadRows(const std::string& path) {
  ASSIGN_OR_RETURN(const TableFileInfo info, ReadTableFileInfo(path));
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> table, NewTable(info));
  RETURN_IF_ERROR(ReadTableFile(path, *table));
  return table;
}

}  // namespace

TableFileInfo LoggedTable::Info(int64_t log) const {
  return {.snapshot = 0,
          .spec = table_->spec(),
          .shards = table_->shards(),
          .num_partitions = static_cast<int64_t>(table_->num_partitions()),
          .log = log};
}

absl::Status LoggedTable::BeginLog(int64_t number) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<PushLog> log,
      PushLog::Create(directory_->LogPath(table_->spec().name, number),
                      Info(number), logging_, &statistics_.sync_durations()));
  const std::unique_lock lock(mutex_);
  log_ = std::move(log);
  number_ = number;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LoggedTable>> LoggedTable::Create(
    std::unique_ptr<SparseTable> table, const RecoveryDirectory* directory,
    PushLogging logging) {
  std::shared_ptr<LoggedTable> logged(
      new LoggedTable(std::move(table), directory, logging));
  if (directory == nullptr) return logged;
  const std::string& name = logged->table_->spec().name;
  ASSIGN_OR_RETURN(const auto tables, directory->List());
  int64_t number = 1;
  if (const auto found = tables.find(name); found != tables.end()) {
    const auto& [logs, rows] = found->second;
    if (!logs.empty()) number = std::max(number, *logs.rbegin() + 1);
    if (!rows.empty()) number = std::max(number, *rows.rbegin() + 1);
  }
  RETURN_IF_ERROR(WriteTableFile(*logged->table_, 0, number,
                                 directory->RowsPath(name, number)));
  RETURN_IF_ERROR(logged->BeginLog(number));
  logged->last_rows_ = number;
  RETURN_IF_ERROR(directory->RemoveBefore(name, number));
  return logged;
}

absl::StatusOr<PushOutcome> LoggedTable::Apply(
    const LoggedPush& push, const std::vector<PartitionRange>& ranges) {
  const auto width = static_cast<size_t>(table_->spec().width);
  auto outcome = PushOutcome::kRepeated;
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(
        const PushOutcome part,
        ApplyPush(*range.partition,
                  {push.id, push.learning_rate,
                   push.keys.subspan(range.begin, range.end - range.begin),
                   push.values.subspan(range.begin * width,
                                       (range.end - range.begin) * width),
                   push.kind}));
    if (part == PushOutcome::kApplied) outcome = PushOutcome::kApplied;
  }
  return outcome;
}

absl::StatusOr<PushOutcome> LoggedTable::Push(
    const LoggedPush& push, const std::vector<PartitionRange>& ranges) {
  if (push.keys.empty()) return PushOutcome::kApplied;
  Observe(PushStage::kDecoded);
  const std::shared_lock lock(mutex_);
  if (log_ != nullptr) RETURN_IF_ERROR(log_->Append(push));
  Observe(PushStage::kLogged);
  ASSIGN_OR_RETURN(const PushOutcome outcome, Apply(push, ranges));
  Observe(PushStage::kApplied);
  return outcome;
}

absl::StatusOr<TableFileSize> LoggedTable::Save(
    absl::FunctionRef<absl::StatusOr<TableFileSize>(
        const SparseTable& table, int64_t log, std::string& path)>
        save) {
  std::string path;
  if (directory_ == nullptr) return save(*table_, 0, path);
  const std::string& name = table_->spec().name;
  const int64_t number = number_ + 1;
  RETURN_IF_ERROR(BeginLog(number));
  ASSIGN_OR_RETURN(const TableFileSize size, save(*table_, number, path));
  std::error_code error;
  std::filesystem::create_hard_link(path, directory_->RowsPath(name, number),
                                    error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot link ", path,
                                               " for the recovery of table \"",
                                               name, "\": ", error.message()));
  }
  // If the new file is damaged, the one before and its logs are still there.
  const int64_t oldest = std::exchange(last_rows_, number);
  RETURN_IF_ERROR(directory_->RemoveBefore(name, oldest));
  return size;
}

absl::StatusOr<std::vector<std::shared_ptr<LoggedTable>>> LoggedTable::Recover(
    const RecoveryDirectory& directory, PushLogging logging) {
  RETURN_IF_ERROR(directory.Open());
  ASSIGN_OR_RETURN(const auto tables, directory.List());
  std::vector<std::shared_ptr<LoggedTable>> recovered;
  for (const auto& [name, numbers] : tables) {
    ASSIGN_OR_RETURN(std::shared_ptr<LoggedTable> table,
                     RecoverOne(directory, name, numbers, logging));
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
    const RecoveryDirectory::Numbers& numbers, PushLogging logging) {
  if (numbers.rows.empty()) return nullptr;
  std::unique_ptr<SparseTable> table;
  int64_t first = 0;
  absl::Status damage;
  const std::vector<int64_t> newest_first(numbers.rows.rbegin(),
                                          numbers.rows.rend());
  for (int64_t number : newest_first) {
    first = number;
    absl::StatusOr<std::unique_ptr<SparseTable>> read =
        ReadRows(directory.RowsPath(name, first));
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
  int64_t last = first - 1;
  for (auto it = numbers.logs.lower_bound(first); it != numbers.logs.end();
       ++it) {
    if (*it != last + 1) {
      return absl::DataLossError(absl::StrCat(
          "the log ", directory.LogPath(name, last + 1), " is missing"));
    }
    last = *it;
    const auto apply = [&](const TableFileInfo& info, const LoggedPush& push) {
      if (info.spec != logged->table_->spec() ||
          info.shards != logged->table_->shards()) {
        return absl::DataLossError(absl::StrCat(
            directory.LogPath(name, last), " is of another table than ",
            directory.RowsPath(name, first)));
      }
      const auto ranges = logged->table_->SplitOrdered(push.keys);
      if (!ranges.ok()) {
        return absl::DataLossError(
            absl::StrCat(directory.LogPath(name, last), ": ",
                         std::string(ranges.status().message())));
      }
      const absl::Status status = logged->Apply(push, *ranges).status();
      // So old that the rows contain it.
      return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
    };
    RETURN_IF_ERROR(PushLog::Replay(directory.LogPath(name, last), apply));
  }
  logged->last_rows_ = first;
  RETURN_IF_ERROR(logged->BeginLog(last + 1));
  return logged;
}

}  // namespace hawser::ps
