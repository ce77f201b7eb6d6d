#include "ps/server/table_server.h"

#include <algorithm>
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
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/server/held_tables.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/table_statistics.h"
#include "ps/table_metrics.h"
#include "ps/table_route.h"
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

v1::TableStatus StatusOf(const HeldTables::Held& held, absl::Time now) {
  LoggedTable& table = *held.table;
  v1::TableStatus status;
  status.set_version(held.route.version);
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

absl::Status CheckNextVersion(const std::string& table,
                              const TableRoute& route) {
  if (route.version >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", table, "\": ", route.version,
                   " is not the version that replaces it: reserve one in the "
                   "store"));
}

}  // namespace

absl::StatusOr<v1::CreateTableReply> TableServer::Create(
    const v1::CreateTableRequest& request) {
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(request.table()));
  const ShardRange shards = FromProto(request.shards());
  TableRoute route = FromProto(request.route());
  route.version = std::max<int64_t>(route.version, 1);
  // Takes a version that was prepared.
  (void)held_.Find(spec.name, route.version);
  ASSIGN_OR_RETURN(const HeldTables::Held held,
                   held_.Add(spec.name, route, [&] {
                     SparseTableOptions options = Options();
                     options.shards = shards;
                     return SparseTable::Create(spec, options);
                   }));
  const SparseTable& table = held.table->table();
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
  v1::CreateTableReply reply;
  reply.set_version(held.route.version);
  return reply;
}

absl::Status TableServer::Start(const std::string& worker, async::Clock& clock,
                                HeldTables::LookUp look_up) {
  clock_ = &clock;
  if (disk_ != nullptr) RETURN_IF_ERROR(disk_->Open(worker));
  if (logging_ == PushLogging::kOff) return absl::OkStatus();
  if (directory_.empty()) {
    return absl::InvalidArgumentError(
        "TableServiceOptions::logging needs a snapshot_directory");
  }
  return held_.Recover(absl::StrCat(directory_, "/.log/", worker), Options(),
                       look_up);
}

absl::StatusOr<std::shared_ptr<LoggedTable>> TableServer::Find(
    const std::string& name, int64_t version) {
  ASSIGN_OR_RETURN(HeldTables::Held held, held_.Find(name, version));
  return std::move(held.table);
}

absl::StatusOr<v1::DescribeTableReply> TableServer::Describe(
    const v1::DescribeTableRequest& request) const {
  ASSIGN_OR_RETURN(const HeldTables::Held held,
                   held_.FindHeld(request.table(), request.version()));
  SparseTable* const table = &held.table->table();
  v1::DescribeTableReply reply;
  *reply.mutable_route() = ToProto(held.route);
  *reply.mutable_table() = ToProto(table->spec());
  *reply.mutable_shards() = ToProto(table->shards());
  reply.set_num_rows(table->num_rows());
  reply.set_num_bytes(static_cast<int64_t>(table->bytes()));
  return reply;
}

absl::StatusOr<v1::SaveTableReply> TableServer::Save(
    const v1::SaveTableRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table(), request.version()));
  if (request.keep_existing()) {
    RETURN_IF_ERROR(snapshots_.CheckNew(found->table(), request.name(),
                                        request.snapshot()));
  }
  TableFileOptions options{.snapshot = request.snapshot()};
  if (!request.base().empty()) {
    ASSIGN_OR_RETURN(options.base,
                     snapshots_.BaseOf(found->table(), request.base()));
  }
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(
      const TableFileSize size,
      found->Save([&](const SparseTable& rows, int64_t log, std::string& path) {
        options.log = log;
        return snapshots_.Save(rows, request.name(), options, path);
      }));
  const absl::Time end = absl::Now();
  found->statistics().RecordSnapshot({request.name(), end, end - start});
  v1::SaveTableReply reply;
  reply.set_num_rows(size.rows);
  reply.set_num_bytes(size.bytes);
  if (options.base.has_value()) {
    reply.set_base_snapshot(options.base->snapshot);
  }
  return reply;
}

absl::StatusOr<v1::RestoreTableReply> TableServer::Restore(
    const v1::RestoreTableRequest& request) {
  const TableRoute route = FromProto(request.route());
  RETURN_IF_ERROR(CheckNextVersion(request.table(), route));
  v1::RestoreTableReply reply;
  if (request.commit()) {
    RETURN_IF_ERROR(held_.Find(request.table(), route.version));
    return reply;
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<SparseTable> rows,
      snapshots_.Restore(
          request.table(), request.name(),
          {request.server(), static_cast<int64_t>(route.servers.size())},
          Options()));
  *reply.mutable_table() = ToProto(rows->spec());
  reply.set_num_rows(rows->num_rows());
  RETURN_IF_ERROR(held_.Prepare(std::move(rows), route));
  return reply;
}

absl::Status TableServer::Drop(const v1::DropTableRequest& request) {
  const TableRoute route = FromProto(request.route());
  RETURN_IF_ERROR(CheckNextVersion(request.table(), route));
  if (request.prepared()) return held_.GiveUp(request.table(), route.version);
  return held_.Drop(request.table(), route);
}

v1::ListTablesReply TableServer::List() const {
  v1::ListTablesReply reply;
  const absl::Time now = absl::Now();
  for (const HeldTables::Held& held : held_.All()) {
    *reply.add_tables() = StatusOf(held, now);
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
  for (HeldTables::Held& held : held_.All()) {
    tables.push_back(std::move(held.table));
  }
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
