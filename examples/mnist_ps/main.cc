// Training of a digit classifier whose parameters are stored on server
// processes. This command starts one server and two trainers on this machine:
//
//   ./bazelw run //examples/mnist_ps
//
// README.md in this folder describes the options.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/mnist_ps/launcher.h"
#include "examples/mnist_ps/local.h"
#include "examples/mnist_ps/options.h"
#include "examples/mnist_ps/server.h"
#include "examples/mnist_ps/stop_signals.h"
#include "examples/mnist_ps/trainer.h"
#include "examples/mnist_ps/usage.h"
#include "telemetry/terminal.h"

namespace hawser::examples::mnist_ps {
namespace {

// Enters the directory in which the user called `bazel run`, so that relative
// paths in flags work. Bazel starts programs in another directory and passes
// this one in the environment.
void EnterCallersDirectory() {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (directory != nullptr && chdir(directory) != 0) {
    std::perror("mnist_ps: BUILD_WORKING_DIRECTORY");
  }
}

std::string OwnPath() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return path;
}

std::string ProcessName(const Options& options) {
  switch (options.role) {
    case Role::kServer:
      return absl::StrCat("mnist_ps ", ServerName(options.index));
    case Role::kTrainer:
      return absl::StrCat("mnist_ps ", TrainerName(options.index));
    default:
      return "mnist_ps";
  }
}

// Runs a role other than the launcher.
absl::Status RunRole(const Options& options) {
  // Before other threads start. The launcher reports for its children.
  StopSignals stop(options.role == Role::kLocal ? "mnist_ps" : "");
  switch (options.role) {
    case Role::kServer:
      return RunServer(options);
    case Role::kTrainer:
      return RunTrainer(options, stop);
    default:
      return RunLocal(options, stop);
  }
}

JobEnd Run(const Options& options, const std::vector<std::string>& arguments) {
  return options.role == Role::kLauncher
             ? RunLauncher(options, OwnPath(), arguments)
             : JobEnd{RunRole(options)};
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

int Main(int argc, char** argv) {
  EnterCallersDirectory();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find(arguments.begin(), arguments.end(), "--help") !=
      arguments.end()) {
    const std::string usage = Usage(telemetry::TerminalColumns(STDOUT_FILENO));
    std::fputs(usage.c_str(), stdout);
    return 0;
  }
  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (!options.ok()) {
    PrintError("mnist_ps", options.status());
    return 1;
  }
  const JobEnd end = Run(*options, arguments);
  if (!end.status.ok()) PrintError(ProcessName(*options), end.status);
  return ExitCode(end);
}

}  // namespace
}  // namespace hawser::examples::mnist_ps

int main(int argc, char** argv) {
  return hawser::examples::mnist_ps::Main(argc, argv);
}
