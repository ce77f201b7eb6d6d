#include "cli/ps/snapshots.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "CLI/Validators.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "cli/ps/table_servers.h"
#include "cli/table.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/ps.grpc.pb.h"
#include "proto/ps.pb.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_route.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::cli {
namespace {

struct SnapshotFlags {
  JobFlags job;
  std::string table;
  std::string name;
  std::string base;
  std::vector<std::string> servers;
  double max_time_s = 3600;
  bool as_json = false;

  absl::Duration max_time() const { return absl::Seconds(max_time_s); }
};

// Calls a method of several servers, request i of server i. The error is the
// first one.
template <class Request, class Reply>
absl::StatusOr<std::vector<Reply>> CallServers(
    const std::vector<const TableServer*>& servers,
    grpc::Status (v1::TableService::Stub::*method)(grpc::ClientContext*,
                                                   const Request&, Reply*),
    const std::vector<Request>& requests, absl::Duration timeout) {
  std::vector<absl::StatusOr<Reply>> results(servers.size());
  CallConcurrently(servers.size(), [&](size_t i) {
    results[i] = servers[i]->client->CallMethod(method, requests[i], timeout);
  });
  std::vector<Reply> replies;
  for (absl::StatusOr<Reply>& result : results) {
    if (!result.ok()) return result.status();
    replies.push_back(*std::move(result));
  }
  return replies;
}

void Print(const Table& table, const SnapshotFlags& flags,
           const CommandContext& context) {
  if (flags.as_json) {
    PrintJson(table, context.out);
  } else {
    PrintTable(table, context.columns, context.out);
  }
}

absl::Status Save(const SnapshotFlags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<TableServer> all,
                   FindTableServers(flags.job, credentials));
  ASSIGN_OR_RETURN(const std::vector<TablePart> parts,
                   CompleteTable(flags.table, all));
  v1::SaveTableRequest request;
  request.set_table(flags.table);
  request.set_version(parts[0].table->version());
  request.set_name(flags.name);
  request.set_snapshot(rpc::ToNumber(rpc::NewIncarnation()));
  request.set_keep_existing(true);
  request.set_base(flags.base);
  std::vector<const TableServer*> servers;
  for (const TablePart& part : parts) servers.push_back(part.server);
  ASSIGN_OR_RETURN(
      const std::vector<v1::SaveTableReply> replies,
      CallServers(servers, &v1::TableService::Stub::SaveTable,
                  std::vector<v1::SaveTableRequest>(servers.size(), request),
                  flags.max_time()));
  Table table{.columns = {"server", "rows", "bytes"}};
  for (size_t i = 0; i < servers.size(); ++i) {
    if (replies[i].base_snapshot() != replies[0].base_snapshot()) {
      return absl::DataLossError(absl::StrCat(
          "the files of snapshot \"", flags.base, "\" of servers '",
          servers[0]->worker.name, "' and '", servers[i]->worker.name,
          "' are of different saves: save a snapshot without --base"));
    }
    table.rows.push_back({servers[i]->worker.name, replies[i].num_rows(),
                          replies[i].num_bytes()});
  }
  Print(table, flags, context);
  return absl::OkStatus();
}

// The servers of the table as the store records them.
absl::StatusOr<std::vector<std::string>> RecordedServers(
    const SnapshotFlags& flags, store::Store& store) {
  absl::StatusOr<ps::RecordedTable> record =
      ps::ReadTableRoute(store, flags.job.job, flags.table);
  if (absl::IsNotFound(record.status())) {
    return absl::NotFoundError(
        absl::StrCat(record.status().message(),
                     "; --servers says which servers restore the table"));
  }
  RETURN_IF_ERROR(record);
  return std::move(record->route.servers);
}

// The servers with these names.
absl::StatusOr<std::vector<const TableServer*>> TargetsOf(
    const SnapshotFlags& flags, const std::vector<std::string>& names,
    const std::vector<TableServer>& all) {
  std::vector<const TableServer*> targets;
  std::set<std::string> named;
  for (const std::string& name : names) {
    if (!named.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--servers names '", name, "' twice"));
    }
    const auto found = std::find_if(
        all.begin(), all.end(),
        [&](const TableServer& server) { return server.worker.name == name; });
    if (found == all.end()) {
      return absl::NotFoundError(
          absl::StrCat("job '", flags.job.job, "' has no server of tables '",
                       name, "'; `hawser ps status` shows them"));
    }
    RETURN_IF_ERROR(found->status);
    targets.push_back(&*found);
  }
  return targets;
}

// Has servers drop what they have prepared for the version of `route`, or their
// earlier versions.
absl::Status Drop(const SnapshotFlags& flags, const ps::TableRoute& route,
                  bool prepared,
                  const std::vector<const TableServer*>& servers) {
  v1::DropTableRequest request;
  request.set_table(flags.table);
  *request.mutable_route() = ps::ToProto(route);
  request.set_prepared(prepared);
  return CallServers(servers, &v1::TableService::Stub::DropTable,
                     std::vector<v1::DropTableRequest>(servers.size(), request),
                     flags.job.timeout())
      .status();
}

// The servers that have the table and are not among `targets`.
std::vector<const TableServer*> OthersThan(
    const SnapshotFlags& flags, const std::vector<TableServer>& all,
    const std::vector<const TableServer*>& targets) {
  std::vector<const TableServer*> others;
  for (const TablePart& part : PartsOf(flags.table, all)) {
    if (std::find(targets.begin(), targets.end(), part.server) ==
        targets.end()) {
      others.push_back(part.server);
    }
  }
  return others;
}

// Records the table that all servers have prepared in this version.
absl::Status Record(const SnapshotFlags& flags, const ps::TableRoute& route,
                    const std::vector<v1::RestoreTableReply>& prepared,
                    store::Store& store) {
  for (size_t i = 1; i < prepared.size(); ++i) {
    if (google::protobuf::util::MessageDifferencer::Equals(
            prepared[i].table(), prepared[0].table())) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("servers '", route.servers[0], "' and '", route.servers[i],
                     "' have read different tables from \"", flags.name,
                     "\": they do not see the same files"));
  }
  ASSIGN_OR_RETURN(const ps::TableSpec spec,
                   ps::FromProto(prepared[0].table()));
  return ps::RecordMove(store, flags.job.job, route, spec).status();
}

// As ps::Table::Restore.
absl::Status Restore(const SnapshotFlags& flags,
                     const CommandContext& context) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<TableServer> all,
                   FindTableServers(flags.job, credentials));
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                   StoreOf(flags.job, credentials));
  ps::TableRoute route{0, flags.servers};
  if (route.servers.empty()) {
    ASSIGN_OR_RETURN(route.servers, RecordedServers(flags, *store));
  }
  ASSIGN_OR_RETURN(const std::vector<const TableServer*> targets,
                   TargetsOf(flags, route.servers, all));
  int64_t highest = 0;
  for (const TablePart& part : PartsOf(flags.table, all)) {
    highest = std::max(highest, part.table->version());
  }
  ASSIGN_OR_RETURN(route.version, ps::ReserveVersion(*store, flags.job.job,
                                                     flags.table, highest + 1));
  std::vector<v1::RestoreTableRequest> requests(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    requests[i].set_table(flags.table);
    requests[i].set_name(flags.name);
    requests[i].set_server(static_cast<int64_t>(i));
    *requests[i].mutable_route() = ps::ToProto(route);
  }
  const auto replies =
      CallServers(targets, &v1::TableService::Stub::RestoreTable, requests,
                  flags.max_time());
  absl::Status recorded = replies.status();
  if (recorded.ok()) recorded = Record(flags, route, *replies, *store);
  if (!recorded.ok()) {
    // The error says why; a server that has prepared it goes on without it.
    (void)Drop(flags, route, /*prepared=*/true, targets);
    return recorded;
  }
  for (v1::RestoreTableRequest& request : requests) request.set_commit(true);
  RETURN_IF_ERROR(CallServers(targets, &v1::TableService::Stub::RestoreTable,
                              requests, flags.max_time()));
  RETURN_IF_ERROR(
      Drop(flags, route, /*prepared=*/false, OthersThan(flags, all, targets)));
  Table table{.columns = {"server", "rows"}};
  for (size_t i = 0; i < targets.size(); ++i) {
    table.rows.push_back({targets[i]->worker.name, (*replies)[i].num_rows()});
  }
  Print(table, flags, context);
  return absl::OkStatus();
}

void AddFlags(CLI::App& command, SnapshotFlags& flags) {
  command.add_option("TABLE", flags.table, "The name of the table.")
      ->required();
  command
      .add_option("NAME", flags.name,
                  "The name of the snapshot: letters, digits, '_', '-' and "
                  "'.'.")
      ->required();
  command
      .add_option("--max-time", flags.max_time_s,
                  "Longest time for the files, in seconds.")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", flags.as_json, "Print a list of JSON objects.");
  AddJobFlags(command, flags.job);
}

}  // namespace

void AddPsSnapshot(CLI::App& ps, CommandContext& context) {
  auto flags = std::make_shared<SnapshotFlags>();
  CLI::App& command = *ps.add_subcommand(
      "snapshot",
      "Write a table to a new snapshot, in the snapshot directories of its "
      "servers. Training goes on.");
  command
      .add_option("--base", flags->base,
                  "An earlier snapshot: the new one has only what changed "
                  "since, and restores together with it.")
      ->type_name("NAME");
  AddFlags(command, *flags);
  command.callback(
      [flags, &context] { context.outcome = Save(*flags, context); });
}

void AddPsRestore(CLI::App& ps, CommandContext& context) {
  auto flags = std::make_shared<SnapshotFlags>();
  CLI::App& command = *ps.add_subcommand(
      "restore",
      "Replace a table by a snapshot, which the servers must find in their "
      "snapshot directories.");
  command
      .add_option("--servers", flags->servers,
                  "The servers that hold the table afterwards, in any number. "
                  "Default: those on which it was created or restored last.")
      ->type_name("NAME,...")
      ->delimiter(',');
  AddFlags(command, *flags);
  command.callback(
      [flags, &context] { context.outcome = Restore(*flags, context); });
}

}  // namespace hawser::cli
