// Training of a digit classifier whose parameters are stored on server
// processes. This command starts one server and two trainers on this machine:
//
//   ./bazelw run //examples/mnist_ps
//
// README.md in this folder describes the options.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "examples/mnist_ps/launcher.h"
#include "examples/mnist_ps/local.h"
#include "examples/mnist_ps/options.h"
#include "examples/mnist_ps/server.h"
#include "examples/mnist_ps/trainer.h"

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

absl::Status Run(const Options& options,
                 const std::vector<std::string>& arguments) {
  switch (options.role) {
    case Role::kLauncher:
      return RunLauncher(options, OwnPath(), arguments);
    case Role::kServer:
      return RunServer(options);
    case Role::kTrainer:
      return RunTrainer(options);
    case Role::kLocal:
      return RunLocal(options);
  }
  return absl::InternalError("unknown role");
}

int Fail(const std::string& name, const absl::Status& status) {
  // An error is one line, even if its message has several.
  const std::string message =
      absl::StrReplaceAll(absl::string_view(status.message()), {{"\n", " "}});
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
  return 1;
}

int Main(int argc, char** argv) {
  EnterCallersDirectory();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (!options.ok()) return Fail("mnist_ps", options.status());
  const absl::Status status = Run(*options, arguments);
  return status.ok() ? 0 : Fail(ProcessName(*options), status);
}

}  // namespace
}  // namespace hawser::examples::mnist_ps

int main(int argc, char** argv) {
  return hawser::examples::mnist_ps::Main(argc, argv);
}
