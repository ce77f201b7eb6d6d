#include "cli/health.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/health_probe.h"
#include "cli/job_access.h"
#include "nlohmann/json.hpp"

namespace hawser::cli {
namespace {

struct HealthFlags {
  JobFlags job;
  std::vector<std::string> addresses;
  std::string service;
  bool as_json = false;
};

absl::StatusOr<std::vector<ProbedServer>> ServersOf(
    const HealthFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  std::vector<ProbedServer> servers;
  for (const std::string& address : flags.addresses) {
    servers.push_back({address, address, ""});
  }
  if (!servers.empty()) return servers;
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> members,
                   MembersOf(flags.job, credentials));
  for (const rpc::WorkerInfo& member : members) {
    servers.push_back({member.name, member.address, member.name});
  }
  return servers;
}

// The error of a server with this health; OK if it is serving.
absl::Status ErrorOf(const ProbedServer& server, const ServerHealth& health) {
  if (!health.error.ok()) {
    return absl::Status(health.error.code(),
                        absl::StrCat(server.name, " at ", server.address, ": ",
                                     health.error.message()));
  }
  if (health.status == "SERVING") return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(server.name, " is ", health.status));
}

absl::Status Health(const HealthFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<ProbedServer> servers,
                   ServersOf(flags, credentials));
  const std::vector<ServerHealth> healths =
      ProbeHealth(servers, {.service = flags.service,
                            .timeout = flags.job.timeout(),
                            .credentials = credentials});
  absl::Status first_error;
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < servers.size(); ++i) {
    const ProbedServer& server = servers[i];
    const ServerHealth& health = healths[i];
    if (!flags.as_json) out << server.name << " " << health.status << "\n";
    nlohmann::json& entry =
        list.emplace_back(nlohmann::json{{"name", server.name},
                                         {"address", server.address},
                                         {"status", health.status}});
    if (!health.error.ok()) {
      entry["error"] = std::string(health.error.message());
    }
    first_error.Update(ErrorOf(server, health));
  }
  if (flags.as_json) {
    out << list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  }
  return first_error;
}

}  // namespace

void AddHealth(CLI::App& hawser, CommandContext& context) {
  CLI::App* health = hawser.add_subcommand(
      "health",
      "Check the health (grpc.health.v1) of servers. Default: all workers of "
      "the job. The exit code is 0 if all are serving.");
  auto flags = std::make_shared<HealthFlags>();
  health->add_option(
      "ADDRESS", flags->addresses,
      "Addresses of workers or stores: HOST:PORT or unix:/PATH.");
  health
      ->add_option("--service", flags->service,
                   "A service or role of the server, such as hawser.v1.Store "
                   "or ps. Default: the server as a whole.")
      ->type_name("NAME");
  health->add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(*health, flags->job);
  health->callback(
      [flags, &context] { context.outcome = Health(*flags, context.out); });
}

}  // namespace hawser::cli
