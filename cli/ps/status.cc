#include "cli/ps/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/health_probe.h"
#include "cli/job_access.h"
#include "cli/ps/table_servers.h"
#include "cli/table.h"
#include "nlohmann/json.hpp"
#include "proto/ps.pb.h"

namespace hawser::cli {
namespace {

using nlohmann::json;

struct StatusFlags {
  JobFlags job;
  std::string server;
  bool as_json = false;
};

// What the row of a server sums over its tables.
struct Totals {
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t pulls = 0;
  int64_t applied = 0;
  int64_t repeated = 0;
  int64_t refused = 0;
  // The youngest one.
  const v1::SavedSnapshot* snapshot = nullptr;
};

Totals TotalsOf(const v1::ListTablesReply& reply) {
  Totals totals;
  for (const v1::TableStatus& table : reply.tables()) {
    totals.rows += table.num_rows();
    totals.bytes += table.num_bytes();
    totals.pulls += table.counts().pulls();
    totals.applied += table.counts().pushes_applied();
    totals.repeated += table.counts().pushes_repeated();
    if (!table.has_last_snapshot()) continue;
    const v1::SavedSnapshot& snapshot = table.last_snapshot();
    if (totals.snapshot == nullptr ||
        snapshot.age_seconds() < totals.snapshot->age_seconds()) {
      totals.snapshot = &snapshot;
    }
  }
  for (const auto& [reason, count] : reply.refused()) totals.refused += count;
  return totals;
}

std::vector<json> RowOf(const TableServer& server, const std::string& health) {
  std::vector<json> row = {server.worker.name, health};
  if (!server.status.ok()) {
    row.resize(12);
    return row;
  }
  const Totals totals = TotalsOf(server.reply);
  row.insert(row.end(),
             {server.reply.tables_size(), totals.rows, totals.bytes,
              totals.pulls, totals.applied, totals.repeated, totals.refused,
              absl::AsciiStrToLower(
                  v1::ListTablesReply::Logging_Name(server.reply.logging()))});
  if (totals.snapshot == nullptr) {
    row.resize(12);
  } else {
    row.insert(row.end(),
               {totals.snapshot->name(),
                static_cast<int64_t>(totals.snapshot->age_seconds())});
  }
  return row;
}

absl::Status ShowStatus(const StatusFlags& flags,
                        const CommandContext& context) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<TableServer> servers,
                   FindTableServers(flags.job, credentials, flags.server));
  std::vector<ProbedServer> probed;
  probed.reserve(servers.size());
  for (const TableServer& server : servers) {
    probed.push_back(
        {server.worker.name, server.worker.address, server.worker.name});
  }
  const std::vector<ServerHealth> healths = ProbeHealth(
      probed, {.timeout = flags.job.timeout(), .credentials = credentials});
  Table table{.columns = {"server", "status", "tables", "rows", "bytes",
                          "pulls", "pushes", "repeated", "refused", "logging",
                          "snapshot", "snapshot_age_s"}};
  absl::Status first_error;
  for (size_t i = 0; i < servers.size(); ++i) {
    table.rows.push_back(RowOf(servers[i], healths[i].status));
    first_error.Update(servers[i].status);
    if (healths[i].status == "SERVING") continue;
    first_error.Update(absl::UnavailableError(
        absl::StrCat(servers[i].worker.name, " is ", healths[i].status)));
  }
  if (flags.as_json) {
    PrintJson(table, context.out);
  } else {
    PrintTable(table, context.columns, context.out);
  }
  return first_error;
}

}  // namespace

void AddPsStatus(CLI::App& ps, CommandContext& context) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App& command = *ps.add_subcommand(
      "status",
      "Show the servers of tables of a job, their requests and snapshots. The "
      "exit code is 0 if all are serving.");
  command
      .add_option("--server", flags->server,
                  "Show only this server. Default: all servers.")
      ->type_name("NAME");
  command.add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(command, flags->job);
  command.callback(
      [flags, &context] { context.outcome = ShowStatus(*flags, context); });
}

}  // namespace hawser::cli
