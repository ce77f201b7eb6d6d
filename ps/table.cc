#include "ps/table.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/route/join_parts.h"
#include "ps/route/moved_table.h"
#include "ps/route/table_location.h"
#include "ps/service_methods.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_route.h"
#include "ps/table_service.h"
#include "ps/table_state.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

// Of calls that write files.
constexpr absl::Duration kFileTimeout = absl::Hours(1);

using CreateReplies = std::vector<rpc::Message<v1::CreateTableReply>>;

ServerPlace PlaceOf(size_t index, const std::vector<std::string>& servers) {
  return {static_cast<int64_t>(index), static_cast<int64_t>(servers.size())};
}

// The record of a table that is to be created on `servers`: with version 0 if
// there is none.
absl::StatusOr<RecordedTable> RecordBefore(
    TableClient& client, const TableSpec& spec,
    const std::vector<std::string>& servers) {
  const rpc::HostHandle::Use host = client.Acquire();
  if (!host) return absl::FailedPreconditionError("the worker was shut down");
  absl::StatusOr<RecordedTable> record =
      ReadTableRoute(*host->store(), host->agent()->job(), spec.name);
  if (absl::IsNotFound(record.status())) return RecordedTable();
  RETURN_IF_ERROR(record);
  if (record->route.servers == servers) return record;
  return absl::AlreadyExistsError(
      absl::StrCat("table \"", spec.name, "\" exists on other servers: '",
                   absl::StrJoin(record->route.servers, "', '"),
                   "'; open it, or restore a snapshot of it onto these"));
}

// Creates the parts of a table on all its servers.
absl::StatusOr<std::vector<async::Future<rpc::Message<v1::CreateTableReply>>>>
SendCreates(TableClient& client, const TableSpec& spec,
            const TableRoute& route) {
  v1::CreateTableRequest request;
  *request.mutable_table() = ToProto(spec);
  *request.mutable_route() = ToProto(route);
  std::vector<async::Future<rpc::Message<v1::CreateTableReply>>> replies;
  for (size_t i = 0; i < route.servers.size(); ++i) {
    ASSIGN_OR_RETURN(const ShardRange shards,
                     ShardsOf(PlaceOf(i, route.servers), spec.num_shards));
    *request.mutable_shards() = ToProto(shards);
    replies.push_back(
        client.Call(route.servers[i], kCreateTableMethod, request));
  }
  return replies;
}

// Records the table that the servers have, unless it is recorded. Returns its
// version.
absl::StatusOr<int64_t> RecordCreated(TableClient& client,
                                      const TableSpec& spec,
                                      const std::vector<std::string>& servers,
                                      const CreateReplies& replies) {
  const int64_t version = replies[0].body.version();
  const rpc::HostHandle::Use host = client.Acquire();
  if (!host) return absl::FailedPreconditionError("the worker was shut down");
  ASSIGN_OR_RETURN(const RecordedTable record,
                   RecordNewTable(*host->store(), host->agent()->job(),
                                  {version, servers}, spec));
  bool same = record.route == TableRoute{version, servers};
  for (const auto& reply : replies) {
    same = same && reply.body.version() == version;
  }
  if (same) return version;
  std::string versions;
  for (size_t i = 0; i < servers.size(); ++i) {
    absl::StrAppend(&versions, i > 0 ? ", " : "", "'", servers[i], "' ",
                    replies[i].body.version());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "table \"", spec.name, "\": the store records version ",
      record.route.version,
      ", and these are the versions of its servers: ", versions,
      "; if it is not being restored now, restore it from a snapshot"));
}

// The sum of the servers' sizes.
absl::StatusOr<TableSize> TotalOf(
    const absl::StatusOr<std::vector<rpc::Message<v1::DescribeTableReply>>>&
        parts) {
  RETURN_IF_ERROR(parts);
  TableSize size;
  for (const auto& part : *parts) {
    size.rows += part.body.num_rows();
    size.bytes += part.body.num_bytes();
  }
  return size;
}

// The size of a snapshot. If no server has the version any more, nothing was
// written, and the error is that of a moved table; if only some have it, their
// files must not be mixed with those of the next version.
absl::StatusOr<TableSize> SizeOfSaved(
    const std::string& table, const std::string& base,
    const std::vector<absl::StatusOr<rpc::Message<v1::SaveTableReply>>>&
        parts) {
  TableSize size;
  size_t moved = 0;
  absl::Status error;
  for (const auto& part : parts) {
    moved += MovedRouteOf(part.status()).has_value() ? 1 : 0;
    error.Update(part.status());
    if (!part.ok()) continue;
    size.rows += part->body.num_rows();
    size.bytes += part->body.num_bytes();
  }
  if (moved > 0 && moved < parts.size()) {
    return absl::AbortedError(
        absl::StrCat("table \"", table,
                     "\" was restored while it was saved: save it again, under "
                     "another name"));
  }
  RETURN_IF_ERROR(error);
  for (const auto& part : parts) {
    if (part->body.base_snapshot() == parts[0]->body.base_snapshot()) continue;
    return absl::DataLossError(absl::StrCat(
        "the servers' files of snapshot \"", base,
        "\" are of different saves: save a snapshot without a base"));
  }
  return size;
}

}  // namespace

absl::StatusOr<Table> Table::Create(rpc::Agent& agent,
                                    const TableSpec& description,
                                    std::vector<std::string> servers) {
  return CreateAsync(agent, description, std::move(servers)).Wait();
}

// Steps, of which the first and the last use the store, which may block:
//   1. Find the version of a table that exists.
//   2. Create it on all servers that do not have it.
//   3. Record the version that they have.
async::Future<Table> Table::CreateAsync(rpc::Agent& agent,
                                        const TableSpec& description,
                                        std::vector<std::string> servers) {
  const absl::StatusOr<TableSpec> spec = NormalizeTableSpec(description);
  const absl::StatusOr<std::shared_ptr<TableClient>> client = ClientOf(agent);
  absl::Status status = spec.status();
  status.Update(CheckServers(servers));
  status.Update(client.status());
  if (status.ok()) {
    status = ShardsOf(PlaceOf(0, servers), spec->num_shards).status();
  }
  if (!status.ok()) return async::MakeReadyFuture<Table>(std::move(status));
  async::Executor* const executor = &agent.host().executor();
  return async::MakeReadyFuture<void>(absl::OkStatus())
      .Then(executor,
            [client = *client, spec = *spec,
             servers](const absl::Status&) -> absl::StatusOr<RecordedTable> {
              return RecordBefore(*client, spec, servers);
            })
      .Then([client = *client, spec = *spec,
             servers](const absl::StatusOr<RecordedTable>& record)
                -> async::Future<CreateReplies> {
        if (!record.ok()) {
          return async::MakeReadyFuture<CreateReplies>(record.status());
        }
        auto replies =
            SendCreates(*client, spec, {record->route.version, servers});
        if (!replies.ok()) {
          return async::MakeReadyFuture<CreateReplies>(replies.status());
        }
        return async::JoinAll(*std::move(replies));
      })
      .Then(executor,
            [client = *client, spec = *spec, servers = std::move(servers)](
                const absl::StatusOr<CreateReplies>& replies)
                -> absl::StatusOr<Table> {
              RETURN_IF_ERROR(replies);
              ASSIGN_OR_RETURN(const int64_t version,
                               RecordCreated(*client, spec, servers, *replies));
              return Table(std::make_shared<const State>(
                  client, spec, TableRoute{version, servers}));
            });
}

absl::StatusOr<Table> Table::Open(rpc::Agent& agent, const std::string& name) {
  ASSIGN_OR_RETURN(const RecordedTable record,
                   ReadTableRoute(*agent.host().store(), agent.job(), name));
  return Open(agent, name, record.route.servers);
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
  const int64_t version = replies[0].body.route().version();
  for (size_t i = 0; i < servers.size(); ++i) {
    ASSIGN_OR_RETURN(const TableSpec part, FromProto(replies[i].body.table()));
    if (replies[i].body.route().version() != version) {
      return absl::FailedPreconditionError(
          absl::StrCat("table \"", name, "\": servers '", servers[0], "' and '",
                       servers[i], "' have the versions ", version, " and ",
                       replies[i].body.route().version(),
                       ": it is being restored, or that was interrupted"));
    }
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
  return Table(std::make_shared<const State>(
      std::move(client), spec, TableRoute{version, std::move(servers)}));
}

async::Future<TableSize> Table::Save(const std::string& name,
                                     const SaveOptions& options) const {
  using Reply = rpc::Message<v1::SaveTableReply>;
  return state_->location().Call<TableSize>(
      [state = state_, name, base = options.base](
          const TablePlacement& placement, const rpc::MethodCallOptions&) {
        v1::SaveTableRequest request;
        request.set_table(state->spec().name);
        request.set_version(placement.route.version);
        request.set_name(name);
        request.set_base(base);
        request.set_snapshot(rpc::ToNumber(rpc::NewIncarnation()));
        std::vector<async::Future<Reply>> replies;
        for (const std::string& server : placement.servers()) {
          replies.push_back(state->client().Call(server, kSaveTableMethod,
                                                 request, {},
                                                 {.timeout = kFileTimeout}));
        }
        return async::JoinAllSettled(std::move(replies))
            .Then([table = request.table(), base](
                      const absl::StatusOr<std::vector<absl::StatusOr<Reply>>>&
                          settled) -> absl::StatusOr<TableSize> {
              RETURN_IF_ERROR(settled);
              return SizeOfSaved(table, base, *settled);
            });
      });
}

const TableSpec& Table::spec() const { return state_->spec(); }

std::vector<std::string> Table::servers() const {
  return state_->placement()->servers();
}

async::Future<TableSize> Table::Size() const {
  return state_->location().Call<TableSize>(
      [state = state_](const TablePlacement& placement,
                       const rpc::MethodCallOptions& options) {
        v1::DescribeTableRequest request;
        request.set_table(state->spec().name);
        request.set_version(placement.route.version);
        std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>>
            replies;
        for (const std::string& server : placement.servers()) {
          replies.push_back(state->client().Call(server, kDescribeTableMethod,
                                                 request, {}, options));
        }
        return JoinParts(std::move(replies)).Then(TotalOf);
      });
}

}  // namespace hawser::ps
