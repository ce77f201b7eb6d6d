#include "cli/list.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "async/status_macros.h"
#include "cli/health_probe.h"
#include "cli/job_access.h"
#include "cli/signature.h"
#include "cli/table.h"
#include "cli/worker_client.h"
#include "nlohmann/json.hpp"

namespace hawser::cli {
namespace {

using nlohmann::json;

struct ListFlags {
  JobFlags job;
  std::string worker;
  bool as_json = false;
};

absl::StatusOr<Table> Workers(
    const ListFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> members,
                   MembersOf(flags.job, credentials));
  std::vector<ProbedServer> servers;
  for (const rpc::WorkerInfo& member : members) {
    servers.push_back({member.name, member.address, member.name});
  }
  const std::vector<ServerHealth> healths = ProbeHealth(
      servers, {.timeout = flags.job.timeout(), .credentials = credentials});
  Table table{
      .columns = {"name", "status", "rank", "incarnation", "roles", "address"}};
  for (size_t i = 0; i < members.size(); ++i) {
    const rpc::WorkerInfo& member = members[i];
    table.rows.push_back({member.name, healths[i].status, member.id.value(),
                          rpc::ToString(member.incarnation), json(member.roles),
                          member.address});
  }
  return table;
}

absl::StatusOr<v1::ListFunctionsReply> Functions(
    const ListFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const rpc::WorkerInfo worker,
                   FindMember(flags.job, credentials, flags.worker));
  WorkerClient client(worker, flags.job.job, CallerName(flags.job), credentials,
                      flags.job.timeout());
  return client.ListFunctions();
}

// One row per function, with `signature_of` it.
Table TableOf(const v1::ListFunctionsReply& reply,
              absl::FunctionRef<std::string(const std::string&)> signature_of) {
  Table table{.columns = {"function", "allowed_roles", "max_request_bytes",
                          "signature"}};
  for (const v1::FunctionDescription& function : reply.functions()) {
    table.rows.push_back(
        {function.name(),
         json(std::vector<std::string>(function.allowed_roles().begin(),
                                       function.allowed_roles().end())),
         function.max_request_bytes(), signature_of(function.signature())});
  }
  return table;
}

// Prints the functions with short signatures, and the fields of the structs in
// them in a table of its own. A signature that is malformed, since the worker
// is not trusted, is printed as it is.
void PrintFunctions(const v1::ListFunctionsReply& reply,
                    const CommandContext& context) {
  std::set<std::pair<std::string, std::string>> fields;
  const Table functions =
      TableOf(reply, [&](const std::string& text) -> std::string {
        const absl::StatusOr<Signature> signature = ParseSignature(text);
        if (!signature.ok()) return text;
        for (const auto& [type, definition] : signature->definitions) {
          fields.emplace(type, ToString(definition));
        }
        return std::string(WithoutDefinitions(text));
      });
  PrintTable(functions, context.columns, context.out);
  if (fields.empty()) return;
  Table types{.columns = {"type", "fields"}};
  for (const auto& [type, definition] : fields) {
    types.rows.push_back({type, definition});
  }
  context.out << "\n";
  PrintTable(types, context.columns, context.out);
}

absl::Status List(const ListFlags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  if (flags.worker.empty()) {
    ASSIGN_OR_RETURN(const Table workers, Workers(flags, credentials));
    if (flags.as_json) {
      PrintJson(workers, context.out);
    } else {
      PrintTable(workers, context.columns, context.out);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::ListFunctionsReply reply,
                   Functions(flags, credentials));
  if (flags.as_json) {
    PrintJson(TableOf(reply, [](const std::string& text) { return text; }),
              context.out);
  } else {
    PrintFunctions(reply, context);
  }
  return absl::OkStatus();
}

}  // namespace

void AddList(CLI::App& hawser, CommandContext& context) {
  CLI::App* list =
      hawser.add_subcommand("list",
                            "Show the workers of a job and whether they serve, "
                            "or the functions of one worker.");
  auto flags = std::make_shared<ListFlags>();
  list->add_option(
      "WORKER", flags->worker,
      "Worker whose functions to show. Default: show all workers.");
  list->add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(*list, flags->job);
  list->callback(
      [flags, &context] { context.outcome = List(*flags, context); });
}

}  // namespace hawser::cli
