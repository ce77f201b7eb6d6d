#include "cli/ps/tables.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "cli/ps/table_servers.h"
#include "cli/table.h"
#include "nlohmann/json.hpp"
#include "proto/ps.pb.h"

namespace hawser::cli {
namespace {

using nlohmann::json;

struct TablesFlags {
  JobFlags job;
  std::string server;
  bool as_json = false;
};

// "Adagrad(eps=1e-10, lr=0.1)"
std::string RuleText(const v1::OptimizerRule& rule) {
  const std::map<std::string, double> options(rule.options().begin(),
                                              rule.options().end());
  return absl::StrCat(rule.name(), "(",
                      absl::StrJoin(options, ", ", absl::PairFormatter("=")),
                      ")");
}

// "LinearLR(end_factor=1, ...), from 1000 StepLR(...)"; null if it is constant.
json ScheduleText(const v1::LearningRateSchedule& schedule) {
  std::string text;
  for (const v1::LearningRateSchedule::Phase& phase : schedule.phases()) {
    if (!text.empty()) {
      absl::StrAppend(&text, ", from ", phase.first_step(), " ");
    }
    absl::StrAppend(&text, RuleText(phase.schedule()));
  }
  return text.empty() ? json() : json(text);
}

std::string ShardsText(const v1::TableShards& shards) {
  return absl::StrCat(shards.first_shard(), "-",
                      shards.first_shard() + shards.num_shards() - 1);
}

// The name of the last snapshot, if it is the same on all servers, and the age
// of its oldest part; nulls otherwise.
std::pair<json, json> LastSnapshot(const std::vector<TablePart>& parts) {
  const std::string& name = parts[0].table->last_snapshot().name();
  double age = 0;
  for (const TablePart& part : parts) {
    const v1::SavedSnapshot& snapshot = part.table->last_snapshot();
    if (snapshot.name().empty() || snapshot.name() != name) return {};
    age = std::max(age, snapshot.age_seconds());
  }
  return {name, static_cast<int64_t>(age)};
}

std::vector<json> RowOf(const std::vector<TablePart>& parts) {
  const v1::TableDescription& table = parts[0].table->table();
  int64_t rows = 0;
  int64_t bytes = 0;
  std::vector<std::string> servers;
  std::vector<std::string> shards;
  for (const TablePart& part : parts) {
    rows += part.table->num_rows();
    bytes += part.table->num_bytes();
    servers.push_back(part.server->worker.name);
    shards.push_back(ShardsText(part.table->shards()));
  }
  auto [snapshot, age] = LastSnapshot(parts);
  return {table.name(),
          table.width(),
          table.dtype(),
          RuleText(table.rule()),
          ScheduleText(table.schedule()),
          table.key_ranges_size(),
          rows,
          bytes,
          json(servers),
          json(shards),
          IsComplete(parts) ? "complete" : "incomplete",
          std::move(snapshot),
          std::move(age)};
}

absl::Status ShowTables(const TablesFlags& flags,
                        const CommandContext& context) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<TableServer> servers,
                   FindTableServers(flags.job, credentials, flags.server));
  absl::Status first_error;
  std::set<std::string> names;
  for (const TableServer& server : servers) {
    first_error.Update(server.status);
    for (const v1::TableStatus& status : server.reply.tables()) {
      names.insert(status.table().name());
    }
  }
  Table table{.columns = {"table", "width", "dtype", "rule", "schedule",
                          "key_ranges", "rows", "bytes", "servers", "shards",
                          "state", "snapshot", "snapshot_age_s"}};
  for (const std::string& name : names) {
    table.rows.push_back(RowOf(PartsOf(name, servers)));
  }
  if (flags.as_json) {
    PrintJson(table, context.out);
  } else {
    PrintTable(table, context.columns, context.out);
  }
  return first_error;
}

}  // namespace

void AddPsTables(CLI::App& ps, CommandContext& context) {
  auto flags = std::make_shared<TablesFlags>();
  CLI::App& command = *ps.add_subcommand(
      "tables", "Show the tables of a job and the servers that hold them.");
  command
      .add_option("--server", flags->server,
                  "Show only the part of this server. Default: all servers.")
      ->type_name("NAME");
  command.add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(command, flags->job);
  command.callback(
      [flags, &context] { context.outcome = ShowTables(*flags, context); });
}

}  // namespace hawser::cli
