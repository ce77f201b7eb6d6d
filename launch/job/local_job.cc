#include "launch/job/local_job.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/job/job_options.h"
#include "launch/supervisor.h"
#include "net/auth/credentials.h"
#include "store/grpc/server.h"

namespace hawser::launch {
namespace {

absl::StatusOr<JobEnd> Launch(const JobOptions& options,
                              const std::vector<std::string>& command) {
  Supervisor::BlockSignals();
  store::StoreServerOptions server;
  ASSIGN_OR_RETURN(
      server.credentials,
      net::Credentials::Create(options.credentials, options.identity()));
  ASSIGN_OR_RETURN(const auto store,
                   store::StoreServer::Start(std::move(server)));
  std::vector<ChildSpec> children;
  for (const JobRole& role : options.roles) {
    for (int i = 0; i < role.count; ++i) {
      ChildSpec child{WorkerName(role.name, i), command};
      // The last value of a repeated flag applies.
      child.command.insert(
          child.command.end(),
          {absl::StrCat("--role=", role.name), absl::StrCat("--index=", i),
           absl::StrCat("--master=", store->address()), "--external_store"});
      children.push_back(std::move(child));
    }
  }
  ASSIGN_OR_RETURN(
      const auto job,
      Supervisor::Start(children,
                        {.notice_period = options.notice_period,
                         .consequence_exit_code = kConsequenceExitCode}));
  absl::Status status = job->Wait();
  const bool stopped = absl::IsCancelled(status);
  return JobEnd{std::move(status), stopped ? job->stop_signal() : 0};
}

}  // namespace

JobEnd RunLocalJob(const JobOptions& options,
                   const std::vector<std::string>& command) {
  absl::StatusOr<JobEnd> end = Launch(options, command);
  return end.ok() ? *std::move(end) : JobEnd{end.status()};
}

}  // namespace hawser::launch
