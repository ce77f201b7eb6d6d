#include "examples/mnist_ps/launcher.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "examples/mnist_ps/digits.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/saved_model.h"
#include "launch/supervisor.h"
#include "net/auth/credentials.h"
#include "store/grpc/server.h"

namespace hawser::examples::mnist_ps {

namespace {

// Checks the inputs before the children start, so that an error is reported
// once instead of by each child.
absl::Status CheckInputs(const Options& options) {
  RETURN_IF_ERROR(CheckSavePath(options.save_path));
  RETURN_IF_ERROR(LoadDigits(options).status());
  return InitialParameters(options).status();
}

absl::StatusOr<JobEnd> Launch(const Options& options,
                              const std::string& program,
                              const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(CheckInputs(options));
  launch::Supervisor::BlockSignals();
  store::StoreServerOptions server;
  ASSIGN_OR_RETURN(
      server.credentials,
      net::Credentials::Create(options.credentials, IdentityOf(options)));
  ASSIGN_OR_RETURN(const auto store,
                   store::StoreServer::Start(std::move(server)));
  std::vector<launch::ChildSpec> children;
  const auto add = [&](const std::string& name, const char* role, int index) {
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    // The last value of a repeated flag applies.
    command.insert(
        command.end(),
        {absl::StrCat("--role=", role), absl::StrCat("--index=", index),
         absl::StrCat("--master=", store->address()),
         absl::StrCat("--seed=", options.seed), "--external_store"});
    children.push_back({name, std::move(command)});
  };
  for (int i = 0; i < options.num_servers; ++i) {
    add(ServerName(i), "server", i);
  }
  for (int i = 0; i < options.num_trainers; ++i) {
    add(TrainerName(i), "trainer", i);
  }
  ASSIGN_OR_RETURN(
      const auto job,
      launch::Supervisor::Start(
          children, {.notice_period = options.notice_period,
                     .consequence_exit_code = kConsequenceExitCode}));
  absl::Status status = job->Wait();
  const bool stopped = absl::IsCancelled(status);
  return JobEnd{std::move(status), stopped ? job->stop_signal() : 0};
}

}  // namespace

JobEnd RunLauncher(const Options& options, const std::string& program,
                   const std::vector<std::string>& arguments) {
  absl::StatusOr<JobEnd> end = Launch(options, program, arguments);
  return end.ok() ? *std::move(end) : JobEnd{end.status()};
}

}  // namespace hawser::examples::mnist_ps
