#include "cli/health.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "grpcpp/client_context.h"
#include "net/auth/peer_verification.h"
#include "net/grpc/client_settings.h"
#include "nlohmann/json.hpp"
#include "rpc/grpc/status.h"
#include "src/proto/grpc/health/v1/health.grpc.pb.h"

namespace hawser::cli {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

struct HealthFlags {
  JobFlags job;
  std::vector<std::string> addresses;
  std::string service;
  bool as_json = false;
};

struct Server {
  std::string name;
  std::string address;
  // The worker that its certificate must name; empty: any worker of the job.
  std::string worker;
};

absl::StatusOr<std::vector<Server>> ServersOf(
    const HealthFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  std::vector<Server> servers;
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

// The reply of the server, such as "SERVING", or the error of the call.
absl::StatusOr<std::string> Ask(
    const Server& server, const HealthFlags& flags,
    std::shared_ptr<const net::Credentials> credentials) {
  const net::PeerVerification verification(std::move(credentials),
                                           server.worker);
  auto stub = ::grpc::health::v1::Health::NewStub(
      verification.CreateChannel(server.address, net::ClientSettings()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + flags.job.timeout()));
  HealthCheckRequest request;
  request.set_service(flags.service);
  HealthCheckResponse response;
  RETURN_IF_ERROR(verification.Explain(
      rpc::FromGrpcStatus(stub->Check(&context, request, &response))));
  return HealthCheckResponse::ServingStatus_Name(response.status());
}

absl::Status Health(const HealthFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const std::vector<Server> servers,
                   ServersOf(flags, credentials));
  absl::Status first_error;
  nlohmann::json list = nlohmann::json::array();
  for (const Server& server : servers) {
    const absl::StatusOr<std::string> answer = Ask(server, flags, credentials);
    const std::string shown = answer.value_or("UNKNOWN");
    if (!flags.as_json) out << server.name << " " << shown << "\n";
    nlohmann::json& entry = list.emplace_back(nlohmann::json{
        {"name", server.name}, {"address", server.address}, {"status", shown}});
    if (!answer.ok()) {
      entry["error"] = std::string(answer.status().message());
      first_error.Update(
          absl::Status(answer.status().code(),
                       absl::StrCat(server.name, " at ", server.address, ": ",
                                    answer.status().message())));
    } else if (shown != "SERVING") {
      first_error.Update(
          absl::UnavailableError(absl::StrCat(server.name, " is ", shown)));
    }
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
  health->add_option(
      "--service", flags->service,
      "A service or role of the server, such as hawser.v1.Store or ps. "
      "Default: the server as a whole.");
  health->add_flag("--json", flags->as_json, "Print a list of JSON objects.");
  AddJobFlags(*health, flags->job);
  health->callback(
      [flags, &context] { context.outcome = Health(*flags, context.out); });
}

}  // namespace hawser::cli
