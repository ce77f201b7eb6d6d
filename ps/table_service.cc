#include "ps/table_service.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/server/row_requests.h"
#include "ps/server/table_server.h"
#include "ps/service_methods.h"
#include "ps/storage/logged_table.h"
#include "ps/table_client.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/run_on.h"
#include "rpc/functions/service_method.h"
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

// Registers a handler of ps/server/row_requests.h.
template <class Request, class Reply, class Handle>
absl::Status RegisterRowMethod(rpc::ServiceHost& host,
                               const rpc::ServiceMethod<Request, Reply>& method,
                               std::shared_ptr<TableServer> server,
                               Handle* handle) {
  return host.RegisterMethod(
      method,
      [server = std::move(server), handle](const rpc::MethodCall& call,
                                           auto request) {
        const absl::StatusOr<std::shared_ptr<LoggedTable>> table =
            server->Find(request.body.table());
        if (!table.ok()) return Done<Reply>(*server, table.status());
        return Done<Reply>(
            *server, handle(**table, server->limits(), call, request.body));
      },
      {.lazy_tensors = true});
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
          std::move(options.disk))) {}

TableService::~TableService() = default;

absl::Status TableService::Start(rpc::ServiceHost& host) {
  RETURN_IF_ERROR(server_->Start(host.info().name, host.clock()));
  client_ = std::make_shared<TableClient>(host);
  RETURN_IF_ERROR(host.RegisterMethod(
      kCreateTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done<v1::CreateTableReply>(*server,
                                          server->Create(request.body));
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
  RETURN_IF_ERROR(RegisterRowMethod(host, kPullMethod, server_, PullRows));
  RETURN_IF_ERROR(RegisterRowMethod(host, kPushMethod, server_, PushRows));
  RETURN_IF_ERROR(RegisterRowMethod(host, kPullSumsMethod, server_, PullSums));
  RETURN_IF_ERROR(RegisterRowMethod(host, kPushSumsMethod, server_, PushSums));
  RETURN_IF_ERROR(host.RegisterMethod(
      kSaveTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done(*server, server->Save(request.body));
      },
      FileMethod()));
  RETURN_IF_ERROR(host.RegisterMethod(
      kDropTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done<v1::DropTableReply>(*server, server->Drop(request.body));
      },
      FileMethod()));
  return host.RegisterMethod(
      kRestoreTableMethod,
      [server = server_](const rpc::MethodCall&, auto request) {
        return Done(*server, server->Restore(request.body));
      },
      FileMethod());
}

void TableService::OnWorkerLost(const rpc::WorkerInfo& worker,
                                const absl::Status& status) {
  (void)status;
  server_->Forget(worker.incarnation);
}

void TableService::Stop() {
  if (client_ != nullptr) client_->Stop();
}

std::map<std::string, int64_t> TableService::DebugNumbers() const {
  return server_->DebugNumbers();
}

std::vector<telemetry::MetricFamily> TableService::Metrics() const {
  return server_->Metrics();
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
