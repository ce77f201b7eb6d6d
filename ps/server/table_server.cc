#include "ps/server/table_server.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_file.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/table_statistics.h"
#include "ps/table_metrics.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/metrics.h"

namespace hawser::ps {
namespace {

v1::ListTablesReply::Logging ToProto(PushLogging logging) {
  switch (logging) {
    case PushLogging::kOff:
      return v1::ListTablesReply::OFF;
    case PushLogging::kWrite:
      return v1::ListTablesReply::WRITE;
    case PushLogging::kSync:
      return v1::ListTablesReply::SYNC;
  }
  return v1::ListTablesReply::UNSPECIFIED;
}

v1::TableStatus StatusOf(LoggedTable& table, absl::Time now) {
  v1::TableStatus status;
  *status.mutable_table() = ToProto(table.table().spec());
  *status.mutable_shards() = ToProto(table.table().shards());
  status.set_num_rows(table.table().num_rows());
  status.set_num_bytes(static_cast<int64_t>(table.table().bytes()));
  const TableCounts counts = table.statistics().counts();
  v1::TableCounts& to = *status.mutable_counts();
  to.set_pulls(counts.pulls);
  to.set_keys_pulled(counts.keys_pulled);
  to.set_bytes_pulled(counts.bytes_pulled);
  to.set_pushes_applied(counts.pushes_applied);
  to.set_pushes_repeated(counts.pushes_repeated);
  to.set_keys_pushed(counts.keys_pushed);
  to.set_bytes_pushed(counts.bytes_pushed);
  const RetentionCounts retention = table.table().retention_counts();
  to.set_rows_expired(retention.rows_expired);
  to.set_rows_evicted(retention.rows_evicted);
  to.set_updates_not_admitted(retention.updates_not_admitted);
  to.set_updates_without_room(retention.updates_without_room);
  if (const auto last = table.statistics().last_snapshot(); last.has_value()) {
    v1::SavedSnapshot& snapshot = *status.mutable_last_snapshot();
    snapshot.set_name(last->name);
    snapshot.set_age_seconds(absl::ToDoubleSeconds(now - last->time));
    snapshot.set_duration_seconds(absl::ToDoubleSeconds(last->duration));
  }
  return status;
}

}  // namespace

absl::StatusOr<bool> TableServer::Exists(const TableSpec& spec,
                                         ShardRange shards) const {
  const async::MutexLock lock(&mutex_);
  const auto found = tables_.find(spec.name);
  if (found == tables_.end()) {
    RETURN_IF_ERROR(CheckNumberOfTables());
    return false;
  }
  const SparseTable& table = found->second->table();
  if (table.spec() != spec) {
    return absl::AlreadyExistsError(absl::StrCat(
        "table \"", spec.name, "\" exists with another description: {",
        ToProto(table.spec()).ShortDebugString(), "}, not {",
        ToProto(spec).ShortDebugString(), "}"));
  }
  if (table.shards() != shards) {
    return absl::AlreadyExistsError(absl::StrCat(
        "table \"", spec.name, "\" exists with other shards here: ",
        table.shards().count, " from ", table.shards().first, " on, not ",
        shards.count, " from ", shards.first, " on"));
  }
  return true;
}

absl::Status TableServer::Create(const v1::CreateTableRequest& request) {
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(request.table()));
  const ShardRange shards = FromProto(request.shards());
  ASSIGN_OR_RETURN(bool exists, Exists(spec, shards));
  if (exists) return absl::OkStatus();
  const async::MutexLock adding(&adding_);
  ASSIGN_OR_RETURN(exists, Exists(spec, shards));
  if (exists) return absl::OkStatus();
  SparseTableOptions options = Options();
  options.shards = shards;
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> rows,
                   SparseTable::Create(spec, options));
  return Add(std::move(rows));
}

absl::Status TableServer::Add(std::unique_ptr<SparseTable> rows) {
  const std::string name = rows->spec().name;
  // Writes files.
  ASSIGN_OR_RETURN(
      std::shared_ptr<LoggedTable> table,
      LoggedTable::Create(std::move(rows), recovery_.get(), logging_));
  table->set_push_observer(push_observer_);
  const async::MutexLock lock(&mutex_);
  tables_[name] = std::move(table);
  return absl::OkStatus();
}

absl::Status TableServer::Start(const std::string& worker,
                                async::Clock& clock) {
  clock_ = &clock;
  if (disk_ != nullptr) RETURN_IF_ERROR(disk_->Open(worker));
  if (logging_ == PushLogging::kOff) return absl::OkStatus();
  if (directory_.empty()) {
    return absl::InvalidArgumentError(
        "TableServiceOptions::logging needs a snapshot_directory");
  }
  recovery_ = std::make_unique<RecoveryDirectory>(
      absl::StrCat(directory_, "/.log/", worker));
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<LoggedTable>> tables,
                   LoggedTable::Recover(*recovery_, logging_, Options()));
  const async::MutexLock lock(&mutex_);
  for (std::shared_ptr<LoggedTable>& table : tables) {
    const std::string name = table->table().spec().name;
    table->set_push_observer(push_observer_);
    tables_[name] = std::move(table);
  }
  return absl::OkStatus();
}

absl::Status TableServer::CheckNumberOfTables() const {
  if (static_cast<int64_t>(tables_.size()) < limits_.max_tables) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "this server has ", limits_.max_tables, " tables, which is its limit"));
}

absl::StatusOr<std::shared_ptr<LoggedTable>> TableServer::Find(
    const std::string& name) const {
  const async::MutexLock lock(&mutex_);
  const auto found = tables_.find(name);
  if (found != tables_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("this server has no table \"", name,
                                          "\"; create it on all its servers"));
}

absl::StatusOr<v1::DescribeTableReply> TableServer::Describe(
    const v1::DescribeTableRequest& request) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  v1::DescribeTableReply reply;
  *reply.mutable_table() = ToProto(table->spec());
  *reply.mutable_shards() = ToProto(table->shards());
  reply.set_num_rows(table->num_rows());
  reply.set_num_bytes(static_cast<int64_t>(table->bytes()));
  return reply;
}

absl::StatusOr<v1::SaveTableReply> TableServer::Save(
    const v1::SaveTableRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  if (request.keep_existing()) {
    RETURN_IF_ERROR(snapshots_.CheckNew(found->table(), request.name(),
                                        request.snapshot()));
  }
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(
      const TableFileSize size,
      found->Save([&](const SparseTable& rows, int64_t log, std::string& path) {
        return snapshots_.Save(rows, request.name(), request.snapshot(), log,
                               path);
      }));
  const absl::Time end = absl::Now();
  found->statistics().RecordSnapshot({request.name(), end, end - start});
  v1::SaveTableReply reply;
  reply.set_num_rows(size.rows);
  reply.set_num_bytes(size.bytes);
  return reply;
}

absl::StatusOr<v1::RestoreTableReply> TableServer::Restore(
    const v1::RestoreTableRequest& request) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<SparseTable> rows,
      snapshots_.Restore(request.table(), request.name(),
                         {request.server(), request.num_servers()}, Options()));
  v1::RestoreTableReply reply;
  *reply.mutable_table() = ToProto(rows->spec());
  reply.set_num_rows(rows->num_rows());
  const async::MutexLock adding(&adding_);
  {
    const async::MutexLock lock(&mutex_);
    if (!tables_.contains(request.table())) {
      RETURN_IF_ERROR(CheckNumberOfTables());
    }
  }
  RETURN_IF_ERROR(Add(std::move(rows)));
  return reply;
}

absl::Status TableServer::Drop(const v1::DropTableRequest& request) {
  const async::MutexLock adding(&adding_);
  {
    const async::MutexLock lock(&mutex_);
    tables_.erase(request.table());
  }
  return recovery_ == nullptr ? absl::OkStatus()
                              : recovery_->Remove(request.table());
}

v1::ListTablesReply TableServer::List() const {
  v1::ListTablesReply reply;
  const absl::Time now = absl::Now();
  for (const auto& table : Tables()) {
    *reply.add_tables() = StatusOf(*table, now);
  }
  reply.set_logging(ToProto(logging_));
  reply.set_has_snapshot_directory(!directory_.empty());
  for (const auto& [reason, count] : refused_.counts()) {
    (*reply.mutable_refused())[reason] = count;
  }
  return reply;
}

std::vector<telemetry::MetricFamily> TableServer::Metrics() const {
  return TableMetrics(Tables(), refused_, absl::Now());
}

std::vector<std::shared_ptr<LoggedTable>> TableServer::Tables() const {
  std::vector<std::shared_ptr<LoggedTable>> tables;
  const async::MutexLock lock(&mutex_);
  for (const auto& [name, table] : tables_) tables.push_back(table);
  return tables;
}

void TableServer::Forget(rpc::Incarnation client) {
  for (const auto& table : Tables()) table->table().Forget(client);
}

std::map<std::string, int64_t> TableServer::DebugNumbers() const {
  const std::vector<std::shared_ptr<LoggedTable>> tables = Tables();
  std::map<std::string, int64_t> numbers = {
      {"tables", static_cast<int64_t>(tables.size())},
      {"rows", 0},
      {"bytes", 0},
      {"pulls", 0},
      {"pushes_applied", 0},
      {"pushes_repeated", 0}};
  RetentionCounts retention;
  for (const auto& table : tables) {
    retention += table->table().retention_counts();
    const TableCounts counts = table->statistics().counts();
    numbers["pulls"] += counts.pulls;
    numbers["pushes_applied"] += counts.pushes_applied;
    numbers["pushes_repeated"] += counts.pushes_repeated;
    numbers["rows"] += table->table().num_rows();
    numbers["bytes"] += static_cast<int64_t>(table->table().bytes());
  }
  numbers["rows_expired"] = retention.rows_expired;
  numbers["rows_evicted"] = retention.rows_evicted;
  numbers["updates_not_admitted"] = retention.updates_not_admitted;
  numbers["updates_without_room"] = retention.updates_without_room;
  return numbers;
}

}  // namespace hawser::ps
