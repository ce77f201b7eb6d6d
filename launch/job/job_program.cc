#include "launch/job/job_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "launch/job/job_flags.h"
#include "launch/job/job_options.h"
#include "launch/job/local_job.h"
#include "launch/job/stop_signals.h"
#include "launch/job/usage.h"
#include "launch/supervisor.h"
#include "telemetry/terminal.h"

namespace hawser::launch {
namespace {

constexpr char kExitCodes[] =
    "The exit code is 0 after success, 1 after an error, 3 if this process "
    "ended because another one has failed or cannot be reached, 130 after "
    "Ctrl-C (SIGINT) and 143 after SIGTERM.";

// Enters the directory in which the user called `bazel run`, so that relative
// paths in flags work. Bazel starts programs in another directory and passes
// this one in the environment.
void EnterCallersDirectory() {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (directory != nullptr && chdir(directory) != 0) {
    std::perror("BUILD_WORKING_DIRECTORY");
  }
}

std::string OwnPath() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return path;
}

absl::StatusOr<JobOptions> ReadFlags(const JobProgram& program, int argc,
                                     char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", rest[1]));
  }
  ASSIGN_OR_RETURN(std::vector<JobRole> roles, program.read_flags());
  return ReadJobFlags(std::move(roles));
}

JobEnd Run(const JobProgram& program, const JobOptions& job,
           std::vector<std::string> arguments) {
  const bool alone = job.roles.empty();
  if (alone || !job.role.empty()) {
    // Before other threads start. The launcher reports for its children.
    StopSignals stop(alone ? program.name : "");
    return {program.run(job, stop)};
  }
  if (program.check != nullptr) {
    absl::Status checked = program.check();
    if (!checked.ok()) return {std::move(checked)};
  }
  arguments.insert(arguments.begin(), OwnPath());
  if (program.child_flags != nullptr) {
    const std::vector<std::string> more = program.child_flags();
    arguments.insert(arguments.end(), more.begin(), more.end());
  }
  return RunLocalJob(job, arguments);
}

void PrintError(const std::string& name, const absl::Status& status) {
  // An error is one line, even if its message has several.
  const std::string message =
      absl::StrReplaceAll(absl::string_view(status.message()), {{"\n", " "}});
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
}

int ExitCode(const JobEnd& end) {
  if (end.stop_signal != 0) return 128 + end.stop_signal;
  if (absl::IsUnavailable(end.status)) return kConsequenceExitCode;
  return end.status.ok() ? 0 : 1;
}

}  // namespace

int RunJobProgram(const JobProgram& program, int argc, char** argv) {
  EnterCallersDirectory();
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find(arguments.begin(), arguments.end(), "--help") !=
      arguments.end()) {
    UsageText text = program.usage;
    text.remarks =
        text.remarks.empty() ? kExitCodes : text.remarks + " " + kExitCodes;
    std::vector<std::string> files = program.library_flags_files;
    files.insert(files.end(), {program.flags_file, kJobFlagsFile});
    std::fputs(
        Usage(text, files, telemetry::TerminalColumns(STDOUT_FILENO)).c_str(),
        stdout);
    return 0;
  }
  const absl::StatusOr<JobOptions> job = ReadFlags(program, argc, argv);
  if (!job.ok()) {
    PrintError(program.name, job.status());
    return 1;
  }
  const JobEnd end = Run(program, *job, std::move(arguments));
  if (!end.status.ok()) {
    PrintError(job->role.empty() ? program.name
                                 : absl::StrCat(program.name, " ", job->name()),
               end.status);
  }
  return ExitCode(end);
}

}  // namespace hawser::launch
