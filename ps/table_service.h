#ifndef HAWSER_PS_TABLE_SERVICE_H_
#define HAWSER_PS_TABLE_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/clock/clock_gate.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/table_limits.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/metrics.h"

namespace hawser::rpc {
class Agent;
}  // namespace hawser::rpc

namespace hawser::ps {

class ClockServer;
class TableClient;
class TableServer;

struct TableServiceOptions {
  TableLimits limits = {};
  // Directory of the snapshots that this worker writes and restores; created if
  // it does not exist. Empty: the worker saves nothing.
  std::string snapshot_directory = {};
  // Whether pushes are logged, in a part of that directory that belongs to this
  // worker's name. A worker that is started again under its name then has its
  // tables, with all pushes that were acknowledged, before it serves.
  PushLogging logging = PushLogging::kOff;
  // Disk for tables whose storage needs one, such as a RocksDbStorage
  // (ps/storage/disk/rocksdb_storage.h). Null: such tables are refused.
  std::shared_ptr<DiskStorage> disk = nullptr;
  // Of the requests that this worker sends to tables without clocks, with their
  // replies: calls of a Table block while earlier ones have so many under way.
  // One request alone may be larger. At least 1.
  int64_t max_bytes_under_way = int64_t{256} << 20;
  // For tests that end processes in the middle of a push.
  PushObserver push_observer = {};
};

// The service for tables. Each worker that holds rows or uses a Table needs
// one:
//
//   options.services.push_back(std::make_unique<ps::TableService>());
//
// Without logs, tables end with the worker that holds them.
class TableService final : public rpc::Service, public telemetry::MetricSource {
 public:
  explicit TableService(TableServiceOptions options = {});
  ~TableService() override;

  std::string_view name() const override { return "ps"; }
  absl::Status Start(rpc::ServiceHost& host) override;
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;
  void Interrupt() override;
  void Stop() override;
  // Those of TableServer::DebugNumbers, and "bytes_under_way": of the requests
  // that this worker sends.
  std::map<std::string, int64_t> DebugNumbers() const override;
  std::vector<telemetry::MetricFamily> Metrics() const override;

  // The clocks of the clocked tables here, by name; empty before Start.
  std::map<std::string, ClockNumbers> ClocksOfTables() const;

  // Null before Start.
  const std::shared_ptr<TableClient>& client() const { return client_; }

 private:
  absl::Status RegisterClockMethods(rpc::ServiceHost& host);

  const std::shared_ptr<TableServer> server_;
  const int64_t max_bytes_under_way_;
  // Null before Start.
  std::shared_ptr<ClockServer> clocks_;
  std::shared_ptr<TableClient> client_;
};

// The client side of the service of an agent.
//
// kFailedPrecondition: a TableService is not attached to it.
absl::StatusOr<std::shared_ptr<TableClient>> ClientOf(rpc::Agent& agent);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_SERVICE_H_
