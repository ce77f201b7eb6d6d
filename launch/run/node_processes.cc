#include "launch/run/node_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"
#include "fs/unique_fd.h"

namespace hawser::launch {
namespace {

// Time for the output of processes that have ended.
constexpr absl::Duration kOutputTimeout = absl::Seconds(2);

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// The path of the program: `name` if it has a slash, otherwise the first
// executable of this name in PATH; `name` if there is none.
std::string FindProgram(const std::string& name) {
  const char* const path = std::getenv("PATH");
  if (name.find('/') != std::string::npos || path == nullptr) return name;
  for (const absl::string_view directory : absl::StrSplit(path, ':')) {
    std::string candidate = absl::StrCat(
        directory.empty() ? absl::string_view(".") : directory, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return name;
}

// "rank 3 (trainer1, local rank 1) on host node7".
std::string Describe(const ProcessPlan& plan, const std::string& host) {
  const std::string role =
      plan.role == kDefaultRole ? "" : absl::StrCat(plan.name(), ", ");
  return absl::StrCat("rank ", plan.rank, " (", role, "local rank ",
                      plan.local_rank, ") on host ", host);
}

int ExitCodeOf(const absl::Status& start_error) {
  if (absl::IsNotFound(start_error)) return kNotFound;
  // EACCES, and ENOEXEC for a file that is no program.
  return absl::IsPermissionDenied(start_error) ||
                 absl::IsInvalidArgument(start_error) ||
                 absl::IsUnknown(start_error)
             ? kNotExecutable
             : 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeProcesses>> NodeProcesses::Start(
    const RunOptions& options, const std::vector<ProcessPlan>& plans,
    NodeProcessesContext context) {
  std::unique_ptr<NodeProcesses> processes(
      new NodeProcesses(std::move(context)));
  RETURN_IF_ERROR(processes->StartAll(options, plans));
  return processes;
}

JobFailure NodeProcesses::FailureOfStart(const absl::Status& error) {
  return {.may_restart = false,
          .exit_code = ExitCodeOf(error),
          .description = std::string(error.message())};
}

absl::Status NodeProcesses::StartAll(const RunOptions& options,
                                     const std::vector<ProcessPlan>& plans) {
  std::vector<std::string> command = options.command;
  command[0] = FindProgram(command[0]);
  std::vector<OutputSource> sources;
  // The ends of pipes that children get.
  std::vector<fs::UniqueFd> ends;
  std::vector<ChildSpec> children;
  const auto add_stream = [&](const ProcessPlan& plan, OutputStream stream,
                              bool redirected, bool teed) -> absl::Status {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot start ", Describe(plan, context_.host)));
    }
    OutputSource source{.process = static_cast<size_t>(plan.local_rank),
                        .stream = stream,
                        .pipe = fs::UniqueFd(pipe_ends[0]),
                        .prefix = plan.name(),
                        .to_console = teed || !redirected};
    ends.emplace_back(pipe_ends[1]);
    if (redirected || teed) {
      ASSIGN_OR_RETURN(
          LogDirectory::File file,
          context_.logs->Open(
              context_.attempt.restart_count, plan.local_rank,
              stream == OutputStream::kOutput ? "stdout" : "stderr"));
      source.file = std::move(file.fd);
      source.path = std::move(file.path);
    }
    sources.push_back(std::move(source));
    return absl::OkStatus();
  };
  for (const ProcessPlan& plan : plans) {
    const StreamChoice::Streams redirects =
        options.redirects.Of(plan.local_rank);
    const StreamChoice::Streams tee = options.tee.Of(plan.local_rank);
    RETURN_IF_ERROR(
        add_stream(plan, OutputStream::kOutput, redirects.output, tee.output));
    RETURN_IF_ERROR(
        add_stream(plan, OutputStream::kError, redirects.error, tee.error));
    children.push_back({.name = Describe(plan, context_.host),
                        .command = command,
                        .environment = EnvironmentOf(plan, context_.attempt),
                        .output_fd = ends[ends.size() - 2].get(),
                        .error_fd = ends.back().get()});
  }
  ASSIGN_OR_RETURN(pump_,
                   OutputPump::Start(std::move(sources), context_.console));
  ASSIGN_OR_RETURN(
      supervisor_,
      Supervisor::Start(children,
                        {.notice_period = context_.notice_period,
                         .kill_delay = options.kill_delay,
                         .consequence_exit_code = kConsequenceExitCode,
                         .contain_descendants = true,
                         .on_failure = [this](const ChildFailure& failure) {
                           Report(failure);
                         }}));
  return absl::OkStatus();
}

void NodeProcesses::Report(const ChildFailure& failure) {
  context_.on_failure(
      {.may_restart = true,
       .exit_code = failure.exit_code,
       .description = failure.description,
       .last_lines = pump_->LastLines(failure.child, kOutputTimeout)});
}

absl::Status NodeProcesses::Wait() {
  absl::Status status = supervisor_->Wait();
  pump_->Finish(kOutputTimeout);
  return status;
}

}  // namespace hawser::launch
