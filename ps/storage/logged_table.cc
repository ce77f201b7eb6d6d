#include "ps/storage/logged_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/table_files.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/snapshot/rows_files.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"

namespace hawser::ps {
namespace {

AdmittedRows RowsAdmittedBy(PushKind kind) {
  switch (kind) {
    case PushKind::kUpdate:
      break;
    case PushKind::kAssign:
      return AdmittedRows::kAll;
    case PushKind::kAssignMissing:
      return AdmittedRows::kMissing;
  }
  return AdmittedRows::kFrequent;
}

// The keys of a push that are admitted, with their gradients or weights.
struct AdmittedPush {
  void Add(const LoggedPush& push, const PartitionRange& range,
           const AdmittedKeys& admitted, size_t width) {
    const size_t begin = keys.size();
    for (const uint32_t position : admitted.positions) {
      const size_t index = range.begin + position;
      keys.push_back(push.keys[index]);
      const auto row = push.values.subspan(index * width, width);
      values.insert(values.end(), row.begin(), row.end());
    }
    ranges.push_back({range.partition, begin, keys.size()});
  }

  std::vector<uint64_t> keys;
  std::vector<float> values;
  std::vector<PartitionRange> ranges;
};

}  // namespace

LoggedTable::LoggedTable(std::unique_ptr<SparseTable> table,
                         const RecoveryDirectory* directory,
                         PushLogging logging)
    : table_(std::move(table)), directory_(directory), logging_(logging) {
  const Consistency consistency = table_->spec().consistency;
  if (consistency.clocked()) {
    clocks_ = std::make_unique<WorkerClocks>(consistency, table_->clock());
  }
}

TableFileInfo LoggedTable::Info(int64_t log) const {
  return {.snapshot = 0,
          .spec = table_->spec(),
          .shards = table_->shards(),
          .num_partitions = static_cast<int64_t>(table_->num_partitions()),
          .log = log,
          .time = table_->time(),
          .clock = table_->clock()};
}

absl::Status LoggedTable::BeginLog(int64_t number) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<PushLog> log,
      PushLog::Create(directory_->LogPath(table_->spec().name, number),
                      Info(number), logging_, &statistics_.sync_durations()));
  const std::unique_lock lock(mutex_);
  if (clocks_ != nullptr) {
    absl::Status status = log->Append(clocks_->ToProto());
    if (!status.ok()) {
      std::error_code ignored;
      std::filesystem::remove(directory_->LogPath(table_->spec().name, number),
                              ignored);
      return status;
    }
  }
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
  RETURN_IF_ERROR(WriteTableFile(*logged->table_, {.log = number},
                                 directory->RowsPath(name, number)));
  RETURN_IF_ERROR(logged->BeginLog(number));
  logged->last_rows_ = number;
  logged->rows_files_.Add(number, logged->Info(number));
  RETURN_IF_ERROR(directory->Keep(name, number, {number}));
  return logged;
}

absl::StatusOr<PushOutcome> LoggedTable::Apply(
    const LoggedPush& push, const std::vector<PartitionRange>& ranges,
    Admission admission) {
  const auto width = static_cast<size_t>(table_->spec().width);
  auto outcome = PushOutcome::kRepeated;
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(
        const PushOutcome part,
        ApplyPush(
            *range.partition,
            {.id = push.id,
             .rate = push.rate,
             .keys = push.keys.subspan(range.begin, range.end - range.begin),
             .values = push.values.subspan(range.begin * width,
                                           (range.end - range.begin) * width),
             .kind = push.kind,
             .worker_time = push.worker_time},
            admission));
    if (part == PushOutcome::kApplied) outcome = PushOutcome::kApplied;
  }
  CountPush(push);
  return outcome;
}

// Steps:
//   1. Decide in each partition which keys are admitted, and which rows go.
//   2. Log that, in one record. If it fails, the rows that are gone remain in
//      the partition's next decisions.
//   3. Update the rows.
absl::StatusOr<PushOutcome> LoggedTable::PushDecided(
    const LoggedPush& push, const std::vector<PartitionRange>& ranges) {
  const std::unique_lock lock(mutex_);
  const auto width = static_cast<size_t>(table_->spec().width);
  AdmittedPush admitted;
  std::vector<uint64_t> removed;
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(const TablePartition::Decisions decisions,
                     range.partition->Decide(
                         {&push.keys[range.begin], range.end - range.begin},
                         RowsAdmittedBy(push.kind), push.id));
    if (decisions.repeated) continue;
    admitted.Add(push, range, decisions.admitted, width);
    removed.insert(removed.end(), decisions.removed.begin(),
                   decisions.removed.end());
  }
  if (admitted.ranges.empty()) {
    CountPush(push);
    return PushOutcome::kRepeated;
  }
  // Keys with rows are left out of an assignment to those without.
  const PushKind kind =
      push.kind == PushKind::kAssignMissing ? PushKind::kAssign : push.kind;
  const LoggedPush logged{
      push.id, push.rate,      admitted.keys, admitted.values,
      kind,    table_->time(), removed,       push.worker_time};
  RETURN_IF_ERROR(log_->Append(logged));
  Observe(PushStage::kLogged);
  ASSIGN_OR_RETURN(const PushOutcome outcome,
                   Apply(logged, admitted.ranges, Admission::kDecided));
  Observe(PushStage::kApplied);
  return outcome;
}

void LoggedTable::CountPush(const LoggedPush& push) {
  if (!push.worker_time.joined() || clocks_ == nullptr) return;
  clocks_->PushApplied(push.id, push.worker_time);
}

absl::Status LoggedTable::Record(const v1::ClockEvent& event) {
  const std::shared_lock lock(mutex_);
  const async::MutexLock order(&events_mutex_);
  ASSIGN_OR_RETURN(const bool changes, clocks_->Check(event));
  if (!changes) return absl::OkStatus();
  if (log_ != nullptr) {
    const absl::Status logged = log_->Append(event);
    // A server that is started again finds out that the worker is gone.
    if (event.kind() != v1::ClockEvent::LOST) RETURN_IF_ERROR(logged);
  }
  clocks_->Apply(event);
  return absl::OkStatus();
}

absl::StatusOr<PushOutcome> LoggedTable::Push(
    const LoggedPush& push, const std::vector<PartitionRange>& ranges) {
  if (push.keys.empty() && !push.worker_time.joined())
    return PushOutcome::kApplied;
  Observe(PushStage::kDecoded);
  if (is_logged() && table_->spec().retention.active()) {
    return PushDecided(push, ranges);
  }
  const std::shared_lock lock(mutex_);
  if (log_ != nullptr) RETURN_IF_ERROR(log_->Append(push));
  Observe(PushStage::kLogged);
  ASSIGN_OR_RETURN(const PushOutcome outcome,
                   Apply(push, ranges, Admission::kDecide));
  Observe(PushStage::kApplied);
  return outcome;
}

absl::StatusOr<TableFileSize> LoggedTable::Save(
    absl::FunctionRef<absl::StatusOr<TableFileSize>(
        const SparseTable& table, int64_t log, std::string& path)>
        save) {
  std::string path;
  if (clocks_ != nullptr) table_->AdvanceClock(clocks_->applied());
  if (directory_ == nullptr) return save(*table_, 0, path);
  const int64_t number = number_ + 1;
  RETURN_IF_ERROR(BeginLog(number));
  ASSIGN_OR_RETURN(const TableFileSize size, save(*table_, number, path));
  RETURN_IF_ERROR(KeepRows(number, path));
  return size;
}

absl::Status LoggedTable::KeepRows(int64_t number, const std::string& path) {
  const std::string& name = table_->spec().name;
  ASSIGN_OR_RETURN(const TableFileInfo info, ReadTableFileInfo(path));
  RowsFiles files = rows_files_;
  files.Add(number, info);
  const std::vector<int64_t> chain = files.ChainOf(number);
  // The logs from last_rows_ on are still there.
  if (chain.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_hard_link(path, directory_->RowsPath(name, number),
                                    error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot link ", path,
                                               " for the recovery of table \"",
                                               name, "\": ", error.message()));
  }
  // If the new file is damaged, the one before and its logs are still there.
  const int64_t before = std::exchange(last_rows_, number);
  std::set<int64_t> kept(chain.begin(), chain.end());
  for (const int64_t other : files.ChainOf(before)) kept.insert(other);
  files.Keep(kept);
  rows_files_ = files;
  return directory_->Keep(name, before, kept);
}

}  // namespace hawser::ps
