#include "cli/list.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "cli/escape_for_terminal.h"
#include "cli/job_access.h"
#include "cli/worker_client.h"
#include "nlohmann/json.hpp"

namespace hawser::cli {
namespace {

using nlohmann::json;

// One worker or function; strings, numbers and lists of strings.
using Row = std::vector<json>;

struct Table {
  std::vector<std::string> columns;
  std::vector<Row> rows = {};
};

struct ListFlags {
  JobFlags job;
  std::string worker;
  bool as_json = false;
};

std::string Cell(const json& value) {
  if (value.is_string()) return EscapeForTerminal(value.get<std::string>());
  if (!value.is_array()) return value.dump();
  return EscapeForTerminal(
      absl::StrJoin(value.get<std::vector<std::string>>(), ","));
}

// Prints columns as wide as their widest entry.
void PrintTable(const Table& table, std::ostream& out) {
  std::vector<std::vector<std::string>> lines = {table.columns};
  for (const Row& row : table.rows) {
    std::transform(row.begin(), row.end(),
                   std::back_inserter(lines.emplace_back()), &Cell);
  }
  std::vector<size_t> widths(table.columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      out << line[i];
      if (i + 1 < line.size()) {
        out << std::string(widths[i] - line[i].size() + 2, ' ');
      }
    }
    out << "\n";
  }
}

// Prints a list with one object per row.
void PrintJson(const Table& table, std::ostream& out) {
  json list = json::array();
  for (const Row& row : table.rows) {
    json object;
    for (size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = row[i];
    list.push_back(std::move(object));
  }
  out << list.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

absl::StatusOr<Table> Workers(
    const ListFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> members,
                   MembersOf(flags.job, credentials));
  Table table{.columns = {"name", "rank", "incarnation", "roles", "address"}};
  for (const rpc::WorkerInfo& member : members) {
    table.rows.push_back({member.name, member.id.value(),
                          rpc::ToString(member.incarnation), json(member.roles),
                          member.address});
  }
  return table;
}

absl::StatusOr<Table> Functions(
    const ListFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const rpc::WorkerInfo worker,
                   FindMember(flags.job, credentials, flags.worker));
  WorkerClient client(worker, flags.job.job, CallerName(flags.job), credentials,
                      flags.job.timeout());
  ASSIGN_OR_RETURN(const v1::ListFunctionsReply reply, client.ListFunctions());
  Table table{.columns = {"function", "allowed_roles", "max_request_bytes",
                          "signature"}};
  for (const v1::FunctionDescription& function : reply.functions()) {
    table.rows.push_back(
        {function.name(),
         json(std::vector<std::string>(function.allowed_roles().begin(),
                                       function.allowed_roles().end())),
         function.max_request_bytes(), function.signature()});
  }
  return table;
}

absl::Status List(const ListFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const Table table, flags.worker.empty()
                                          ? Workers(flags, credentials)
                                          : Functions(flags, credentials));
  if (flags.as_json) {
    PrintJson(table, out);
  } else {
    PrintTable(table, out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddList(CLI::App& hawser, CommandContext& context) {
  CLI::App* list = hawser.add_subcommand(
      "list", "Show the workers of a job, or the functions of one worker.");
  auto flags = std::make_shared<ListFlags>();
  list->add_option(
      "WORKER", flags->worker,
      "Worker whose functions to show. Default: show all workers.");
  list->add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(*list, flags->job);
  list->callback(
      [flags, &context] { context.outcome = List(*flags, context.out); });
}

}  // namespace hawser::cli
