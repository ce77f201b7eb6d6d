#include "ps/table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_client.h"
#include "ps/table_route.h"
#include "ps/table_service.h"
#include "ps/table_state.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

// Of calls that read or write files.
constexpr absl::Duration kFileTimeout = absl::Hours(1);

absl::Status CheckServers(const std::vector<std::string>& servers) {
  if (servers.empty()) {
    return absl::InvalidArgumentError("a table needs at least one server");
  }
  if (std::set<std::string>(servers.begin(), servers.end()).size() !=
      servers.size()) {
    return absl::InvalidArgumentError("a server of the table is named twice");
  }
  return absl::OkStatus();
}

ServerPlace PlaceOf(size_t index, const std::vector<std::string>& servers) {
  return {static_cast<int64_t>(index), static_cast<int64_t>(servers.size())};
}

// Records the servers of a table in the store of the job.
absl::Status RecordServers(TableClient& client, const std::string& table,
                           const std::vector<std::string>& servers) {
  const rpc::HostHandle::Use host = client.Acquire();
  if (!host) {
    return absl::FailedPreconditionError("the worker was shut down");
  }
  return WriteTableRoute(*host->store(), host->agent()->job(), table, servers)
      .status();
}

// Removes the table from `previous` servers that are not among `servers`.
void DropElsewhere(TableClient& client, const std::string& table,
                   const std::vector<std::string>& previous,
                   const std::vector<std::string>& servers) {
  v1::DropTableRequest request;
  request.set_table(table);
  for (const std::string& server : previous) {
    if (std::find(servers.begin(), servers.end(), server) != servers.end()) {
      continue;
    }
    const auto dropped = client
                             .Call(server, kDropTableMethod, request, {},
                                   {.timeout = TableClient::kAttemptTimeout})
                             .Wait();
    if (dropped.ok()) continue;
    telemetry::Log(telemetry::LogSeverity::kWarning,
                   absl::StrCat("table \"", table,
                                "\" was restored on other servers, but '",
                                server, "' may still have it: ",
                                std::string(dropped.status().message())));
  }
}

// The sum of the servers' sizes.
template <class Reply>
absl::StatusOr<TableSize> TotalOf(
    const absl::StatusOr<std::vector<rpc::Message<Reply>>>& parts) {
  RETURN_IF_ERROR(parts);
  TableSize size;
  for (const rpc::Message<Reply>& part : *parts) {
    size.rows += part.body.num_rows();
    size.bytes += part.body.num_bytes();
  }
  return size;
}

}  // namespace

absl::StatusOr<Table> Table::Create(rpc::Agent& agent,
                                    const TableSpec& description,
                                    std::vector<std::string> servers) {
  return CreateAsync(agent, description, std::move(servers)).Wait();
}

async::Future<Table> Table::CreateAsync(rpc::Agent& agent,
                                        const TableSpec& description,
                                        std::vector<std::string> servers) {
  using Reply = rpc::Message<v1::CreateTableReply>;
  const auto begin =
      [&]() -> absl::StatusOr<std::vector<async::Future<Reply>>> {
    ASSIGN_OR_RETURN(const TableSpec spec, NormalizeTableSpec(description));
    RETURN_IF_ERROR(CheckServers(servers));
    ASSIGN_OR_RETURN(const std::shared_ptr<TableClient> client,
                     ClientOf(agent));
    std::vector<v1::CreateTableRequest> requests(servers.size());
    for (size_t i = 0; i < servers.size(); ++i) {
      ASSIGN_OR_RETURN(const ShardRange shards,
                       ShardsOf(PlaceOf(i, servers), spec.num_shards));
      *requests[i].mutable_table() = ToProto(spec);
      *requests[i].mutable_shards() = ToProto(shards);
    }
    std::vector<async::Future<Reply>> replies;
    for (size_t i = 0; i < servers.size(); ++i) {
      replies.push_back(
          client->Call(servers[i], kCreateTableMethod, requests[i]));
    }
    return replies;
  };
  absl::StatusOr<std::vector<async::Future<Reply>>> replies = begin();
  if (!replies.ok()) return async::MakeReadyFuture<Table>(replies.status());
  auto state = std::make_shared<const State>(
      *ClientOf(agent), *NormalizeTableSpec(description), std::move(servers));
  // The store may block.
  return async::JoinAll(*std::move(replies))
      .Then(&agent.host().executor(),
            [state = std::move(state)](
                const absl::StatusOr<std::vector<Reply>>& done)
                -> absl::StatusOr<Table> {
              RETURN_IF_ERROR(done);
              RETURN_IF_ERROR(RecordServers(state->client(), state->spec().name,
                                            state->servers()));
              return Table(state);
            });
}

absl::StatusOr<Table> Table::Open(rpc::Agent& agent, const std::string& name) {
  ASSIGN_OR_RETURN(TableRoute route,
                   ReadTableRoute(*agent.host().store(), agent.job(), name));
  return Open(agent, name, std::move(route.servers));
}

absl::StatusOr<Table> Table::Open(rpc::Agent& agent, const std::string& name,
                                  std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(std::shared_ptr<TableClient> client, ClientOf(agent));
  RETURN_IF_ERROR(CheckServers(servers));
  std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>> futures;
  v1::DescribeTableRequest request;
  request.set_table(name);
  futures.reserve(servers.size());
  for (const std::string& server : servers) {
    futures.push_back(client->Call(server, kDescribeTableMethod, request));
  }
  ASSIGN_OR_RETURN(const auto replies,
                   async::JoinAll(std::move(futures)).Wait());
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(replies[0].body.table()));
  for (size_t i = 0; i < servers.size(); ++i) {
    ASSIGN_OR_RETURN(const TableSpec part, FromProto(replies[i].body.table()));
    const ShardRange held = FromProto(replies[i].body.shards());
    ASSIGN_OR_RETURN(const ShardRange wanted,
                     ShardsOf(PlaceOf(i, servers), spec.num_shards));
    if (part != spec || held != wanted) {
      return absl::FailedPreconditionError(absl::StrCat(
          "table \"", name, "\": server '", servers[i], "' holds ", held.count,
          " shards from ", held.first,
          " on, which does not fit its place in this list of ", servers.size(),
          " servers: name all servers, in the order in which the table was "
          "created"));
    }
  }
  return Table(std::make_shared<const State>(std::move(client), spec,
                                             std::move(servers)));
}

absl::StatusOr<Table> Table::Restore(rpc::Agent& agent, const std::string& name,
                                     const std::string& snapshot,
                                     std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(std::shared_ptr<TableClient> client, ClientOf(agent));
  RETURN_IF_ERROR(CheckServers(servers));
  v1::RestoreTableRequest request;
  request.set_table(name);
  request.set_name(snapshot);
  std::vector<async::Future<rpc::Message<v1::RestoreTableReply>>> futures;
  for (size_t i = 0; i < servers.size(); ++i) {
    request.set_server(static_cast<int64_t>(i));
    request.set_num_servers(static_cast<int64_t>(servers.size()));
    futures.push_back(client->Call(servers[i], kRestoreTableMethod, request, {},
                                   {.timeout = kFileTimeout}));
  }
  ASSIGN_OR_RETURN(const auto replies,
                   async::JoinAll(std::move(futures)).Wait());
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(replies[0].body.table()));
  for (size_t i = 0; i < servers.size(); ++i) {
    ASSIGN_OR_RETURN(const TableSpec part, FromProto(replies[i].body.table()));
    // The servers' replies are not trusted.
    RETURN_IF_ERROR(ShardsOf(PlaceOf(i, servers), spec.num_shards));
    if (part == spec) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", name, "\": servers '", servers[0], "' and '", servers[i],
        "' have restored different tables from snapshot \"", snapshot,
        "\": they do not see the same files"));
  }
  const absl::StatusOr<TableRoute> previous =
      ReadTableRoute(*agent.host().store(), agent.job(), name);
  RETURN_IF_ERROR(RecordServers(*client, name, servers));
  if (previous.ok()) {
    DropElsewhere(*client, name, previous->servers, servers);
  }
  return Table(std::make_shared<const State>(std::move(client), spec,
                                             std::move(servers)));
}

async::Future<TableSize> Table::Save(const std::string& name) const {
  v1::SaveTableRequest request;
  request.set_table(spec().name);
  request.set_name(name);
  request.set_snapshot(rpc::ToNumber(rpc::NewIncarnation()));
  std::vector<async::Future<rpc::Message<v1::SaveTableReply>>> replies;
  for (const std::string& server : servers()) {
    replies.push_back(state_->client().Call(server, kSaveTableMethod, request,
                                            {}, {.timeout = kFileTimeout}));
  }
  return async::JoinAll(std::move(replies)).Then(TotalOf<v1::SaveTableReply>);
}

const TableSpec& Table::spec() const { return state_->spec(); }

const std::vector<std::string>& Table::servers() const {
  return state_->servers();
}

async::Future<TableSize> Table::Size() const {
  v1::DescribeTableRequest request;
  request.set_table(spec().name);
  std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>> replies;
  for (const std::string& server : servers()) {
    replies.push_back(
        state_->client().Call(server, kDescribeTableMethod, request));
  }
  return async::JoinAll(std::move(replies))
      .Then(TotalOf<v1::DescribeTableReply>);
}

}  // namespace hawser::ps
