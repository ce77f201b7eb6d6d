// The tables of one server.

#ifndef HAWSER_PS_SERVER_TABLE_SERVER_H_
#define HAWSER_PS_SERVER_TABLE_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "ps/server/held_tables.h"
#include "ps/server/refused_requests.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/storage/snapshot/snapshot_directory.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_limits.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/metrics.h"

namespace hawser::v1 {
class CreateTableReply;
class CreateTableRequest;
class DescribeTableReply;
class DescribeTableRequest;
class DropTableRequest;
class ListTablesReply;
class RestoreTableReply;
class RestoreTableRequest;
class SaveTableReply;
class SaveTableRequest;
}  // namespace hawser::v1

namespace hawser::ps {

// Creates, saves, restores and finds tables: the handlers of the methods of
// proto/ps.proto, except for those of ps/server/row_requests.h.
//
// Thread-safe.
class TableServer {
 public:
  // `snapshot_directory` may be empty if `logging` is kOff. `disk` is for
  // tables whose storage needs one; may be null.
  TableServer(const TableLimits& limits, std::string snapshot_directory,
              PushLogging logging, PushObserver push_observer = {},
              std::shared_ptr<DiskStorage> disk = nullptr)
      : limits_(limits),
        directory_(snapshot_directory),
        snapshots_(std::move(snapshot_directory)),
        logging_(logging),
        disk_(std::move(disk)),
        held_(limits.max_tables, logging, std::move(push_observer)) {}

  const TableLimits& limits() const { return limits_; }

  // Takes the tables that a worker of this name had when it ended, if pushes
  // are logged, as HeldTables::Recover does. Rows age by `clock`, which must
  // outlive the server. Call once, first. Errors of DiskStorage::Open and
  // HeldTables::Recover, and kInvalidArgument: pushes are logged, but there is
  // no snapshot directory.
  absl::Status Start(const std::string& worker, async::Clock& clock,
                     HeldTables::LookUp look_up);

  // kAlreadyExists: the table exists with another description or other shards;
  // the error names the difference.
  absl::StatusOr<v1::CreateTableReply> Create(
      const v1::CreateTableRequest& request);

  // Errors of HeldTables.
  absl::StatusOr<v1::DescribeTableReply> Describe(
      const v1::DescribeTableRequest& request) const;

  // As HeldTables::Find.
  absl::StatusOr<std::shared_ptr<LoggedTable>> Find(const std::string& name,
                                                    int64_t version);

  std::vector<std::shared_ptr<LoggedTable>> Tables() const;

  // Errors of SnapshotDirectory and HeldTables.
  absl::StatusOr<v1::SaveTableReply> Save(const v1::SaveTableRequest& request);
  // Prepares a version, or takes it. Errors of SnapshotDirectory and
  // HeldTables; the tables are then as before.
  absl::StatusOr<v1::RestoreTableReply> Restore(
      const v1::RestoreTableRequest& request);

  // Removes the table and its log, or what is prepared. Errors of HeldTables.
  absl::Status Drop(const v1::DropTableRequest& request);

  v1::ListTablesReply List() const;
  std::vector<telemetry::MetricFamily> Metrics() const;

  // Requests that handlers have refused.
  RefusedRequests& refused() { return refused_; }

  // Drops what is remembered of a client that makes no more calls.
  void Forget(rpc::Incarnation client);

  // "tables", and sums over them: "rows", "bytes", "pulls", "pushes_applied",
  // "pushes_repeated", and the RetentionCounts.
  std::map<std::string, int64_t> DebugNumbers() const;

 private:
  // Limits, clock and disk of a table.
  SparseTableOptions Options() const {
    return {.max_rows = limits_.max_rows, .clock = clock_, .disk = disk_.get()};
  }
  const TableLimits limits_;
  const std::string directory_;
  const SnapshotDirectory snapshots_;
  const PushLogging logging_;
  const std::shared_ptr<DiskStorage> disk_;
  RefusedRequests refused_;
  // Null: the machine's. Set by Start.
  async::Clock* clock_ = nullptr;
  HeldTables held_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_TABLE_SERVER_H_
