#include "ps/table_service.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/clock/clock_gate.h"
#include "ps/clock/clock_metrics.h"
#include "ps/clock/clock_server.h"
#include "ps/clock/row_service.h"
#include "ps/server/table_server.h"
#include "ps/service_methods.h"
#include "ps/table_route.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/metrics.h"

namespace hawser::ps {
namespace {

// A reply, or the error, which is counted.
template <class M>
async::Future<rpc::Message<M>> Done(TableServer& server,
                                    absl::StatusOr<rpc::Message<M>> reply) {
  server.refused().Count(reply.status());
  return async::MakeReadyFuture<rpc::Message<M>>(std::move(reply));
}

// The same without tensors.
template <class M>
async::Future<rpc::Message<M>> Done(TableServer& server,
                                    absl::StatusOr<M> reply) {
  if (!reply.ok()) {
    return Done<M>(server, absl::StatusOr<rpc::Message<M>>(reply.status()));
  }
  return Done<M>(server, absl::StatusOr<rpc::Message<M>>(
                             rpc::Message<M>{*std::move(reply), {}}));
}

// The same without content.
template <class M>
async::Future<rpc::Message<M>> Done(TableServer& server,
                                    const absl::Status& status) {
  return Done<M>(server, status.ok()
                             ? absl::StatusOr<rpc::Message<M>>(absl::in_place)
                             : absl::StatusOr<rpc::Message<M>>(status));
}

// Saves and restores run one after the other, because they are limited by the
// disk.
rpc::MethodOptions FileMethod() {
  return {.run_on = rpc::RunOn::Queue("ps.files")};
}

}  // namespace

TableService::TableService(TableServiceOptions options)
    : server_(std::make_shared<TableServer>(
          options.limits, std::move(options.snapshot_directory),
          options.logging, std::move(options.push_observer),
          std::move(options.disk))),
      max_bytes_under_way_(options.max_bytes_under_way) {}

TableService::~TableService() = default;

absl::Status TableService::Start(rpc::ServiceHost& host) {
  if (max_bytes_under_way_ < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("TableServiceOptions::max_bytes_under_way is ",
                     max_bytes_under_way_, ", and must be at least 1"));
  }
  RETURN_IF_ERROR(server_->Start(
      host.info().name, host.clock(),
      [&host](const std::string& table) -> absl::StatusOr<RecordedTable> {
        // A fake has none.
        if (host.store() == nullptr) return RecordedTable();
        return AwaitTableRoute(*host.store(), host.agent()->job(), table);
      }));
  client_ = std::make_shared<TableClient>(host, max_bytes_under_way_);
  clocks_ = std::make_shared<ClockServer>(server_, host);
  RETURN_IF_ERROR(host.RegisterMethod(
      kCreateTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done(*server, server->Create(request.body));
      }));
  RETURN_IF_ERROR(host.RegisterMethod(
      kDescribeTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done(*server, server->Describe(request.body));
      },
      {.for_observers = true}));
  RETURN_IF_ERROR(host.RegisterMethod(
      kListTablesMethod,
      [server = server_](const rpc::MethodCall&, auto) {
        return async::MakeReadyFuture<rpc::Message<v1::ListTablesReply>>(
            rpc::Message<v1::ListTablesReply>{server->List(), {}});
      },
      {.for_observers = true}));
  RETURN_IF_ERROR(RegisterRowMethods(host, server_, clocks_));
  RETURN_IF_ERROR(RegisterClockMethods(host));
  RETURN_IF_ERROR(host.RegisterMethod(
      kSaveTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done(*server, server->Save(request.body));
      },
      FileMethod()));
  RETURN_IF_ERROR(host.RegisterMethod(
      kDropTableMethod,
      [server = server_, clocks = clocks_](const rpc::MethodCall&,
                                           auto request) {
        const absl::Status dropped = server->Drop(request.body);
        clocks->CloseReplaced();
        return Done<v1::DropTableReply>(*server, dropped);
      },
      FileMethod()));
  return host.RegisterMethod(
      kRestoreTableMethod,
      [server = server_, clocks = clocks_](const rpc::MethodCall&,
                                           auto request) {
        auto reply = server->Restore(request.body);
        clocks->CloseReplaced();
        return Done(*server, std::move(reply));
      },
      FileMethod());
}

absl::Status TableService::RegisterClockMethods(rpc::ServiceHost& host) {
  RETURN_IF_ERROR(host.RegisterMethod(
      kJoinClockMethod, [server = server_, clocks = clocks_](
                            const rpc::MethodCall& call, auto request) {
        return Done(*server, clocks->Join(call, request.body));
      }));
  // Lets the requests through that fill a peer's quota.
  RETURN_IF_ERROR(
      host.RegisterMethod(kAdvanceClockMethod,
                          [server = server_, clocks = clocks_](
                              const rpc::MethodCall& call, auto request) {
                            return Done<v1::AdvanceClockReply>(
                                *server, clocks->Advance(call, request.body));
                          },
                          {.counted = false}));
  return host.RegisterMethod(
      kLeaveClockMethod,
      [clocks = clocks_](const rpc::MethodCall& call, auto request) {
        return clocks->Leave(call, request.body)
            .Then([](const absl::Status& status)
                      -> absl::StatusOr<rpc::Message<v1::LeaveClockReply>> {
              RETURN_IF_ERROR(status);
              return rpc::Message<v1::LeaveClockReply>();
            });
      });
}

void TableService::OnWorkerLost(const rpc::WorkerInfo& worker,
                                const absl::Status& status) {
  (void)status;
  client_->moves().OnWorkerLost(worker.name);
  clocks_->Lose(worker.incarnation);
  server_->Forget(worker.incarnation);
}

std::map<std::string, ClockNumbers> TableService::ClocksOfTables() const {
  if (clocks_ == nullptr) return {};
  return clocks_->Numbers();
}

void TableService::Interrupt() {
  if (clocks_ != nullptr) clocks_->Interrupt();
}

void TableService::Stop() {
  if (clocks_ != nullptr) clocks_->Stop();
  if (client_ != nullptr) client_->Stop();
}

std::map<std::string, int64_t> TableService::DebugNumbers() const {
  std::map<std::string, int64_t> numbers = server_->DebugNumbers();
  if (client_ != nullptr) {
    numbers["bytes_under_way"] = client_->bytes_under_way();
  }
  return numbers;
}

std::vector<telemetry::MetricFamily> TableService::Metrics() const {
  std::vector<telemetry::MetricFamily> families = server_->Metrics();
  for (telemetry::MetricFamily& family : ClockMetrics(ClocksOfTables())) {
    families.push_back(std::move(family));
  }
  return families;
}

absl::StatusOr<std::shared_ptr<TableClient>> ClientOf(rpc::Agent& agent) {
  const auto* service = agent.service<TableService>();
  if (service == nullptr || service->client() == nullptr) {
    return absl::FailedPreconditionError(
        "the worker has no service for tables: add a ps::TableService to its "
        "options");
  }
  return service->client();
}

}  // namespace hawser::ps
