// Benchmark of the main example, training on a parameter server, compared with
// training in one process and with PyTorch in the same run.
//
//   ./bazelw run -c opt //benchmarks:main_job -- --quick
//
//   trainers_N  samples per second of examples/mnist_ps with one server and N
//               trainers, each a process of its own on this machine
//
// Peers:
//   local    the example with --local: the same training in one process
//   pytorch  a parameter server with torch.distributed.rpc and distributed
//            autograd: as many processes, the same model, update rule and
//            numbers of samples. If PyTorch is not installed, the case prints a
//            line with "skipped" instead of the ratio
//
// Every turn trains for the same number of epochs. The processes of the example
// are new in each turn, and the time to start them does not count. Those of
// PyTorch have trained before, and are stopped outside of their turns, because
// they poll without sleeping. Turns of all sides alternate. The ratio is
// computed for each round of turns.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "benchmarks/child_process.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(bool, quick, false, "Finish within two minutes.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");

namespace hawser::benchmarks {
namespace {

constexpr absl::Duration kTurnTimeout = absl::Minutes(5);
constexpr char kAdvice[] =
    "install the peer with: apt-get install python3-torch libopenblas0-pthread";

// Runs the example with `flags` and returns the samples per second that it
// prints.
absl::StatusOr<double> SamplesPerSecond(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"examples/mnist_ps/mnist_ps"};
  command.insert(command.end(), flags.begin(), flags.end());
  ASSIGN_OR_RETURN(const auto program, ChildProcess::Start(command));
  const absl::Time deadline = absl::Now() + kTurnTimeout;
  const absl::StatusOr<std::string> line = program->Receive(deadline);
  if (!line.ok()) {
    return absl::Status(line.status().code(),
                        absl::StrCat("the example printed no result: ",
                                     line.status().message()));
  }
  // Until its processes have ended, which would slow down the next turn.
  const absl::Status end = program->Receive(deadline).status();
  if (!absl::IsUnavailable(end)) {
    return absl::InternalError("the example did not end after its result");
  }
  const auto result = nlohmann::json::parse(*line, nullptr, false);
  if (!result.is_object() || !result.contains("samples_per_s") ||
      !(result["test_accuracy"] > 0.9)) {
    return absl::InternalError(
        absl::StrCat("the example did not train: ", *line));
  }
  return result["samples_per_s"].get<double>();
}

// kNotFound if the interpreter does not find PyTorch.
absl::Status FindPyTorch(const std::string& python) {
  if (PeerProcess::Start({python, "-c", "import torch; print('ready')"},
                         kAdvice)
          .ok()) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("PyTorch is not installed: ", python,
                                          " cannot import torch; ", kAdvice));
}

absl::StatusOr<std::unique_ptr<PeerProcess>> StartPyTorch(
    const std::string& python, int trainers) {
  ASSIGN_OR_RETURN(auto peer, PeerProcess::Start(
                                  {python, "benchmarks/peers/main_job_torch.py",
                                   absl::StrCat(trainers)},
                                  kAdvice, PeerProcess::WhenIdle::kStopped));
  if (!absl::StrContains(peer->description(), "openblas")) {
    return absl::FailedPreconditionError(
        absl::StrCat("PyTorch runs on ", peer->description(),
                     ", which is too slow to compare with: apt-get install "
                     "libopenblas0-pthread"));
  }
  return peer;
}

absl::Status Measure(const std::string& name, int trainers) {
  const std::string python = absl::GetFlag(FLAGS_python);
  const absl::Status torch_found = FindPyTorch(python);
  std::unique_ptr<PeerProcess> torch;
  if (torch_found.ok()) {
    ASSIGN_OR_RETURN(torch, StartPyTorch(python, trainers));
    std::fprintf(stderr, "peer: PyTorch %s, one thread per process\n",
                 torch->description().c_str());
  }
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int epochs = quick ? 3 : 8;
  const std::string epochs_flag = absl::StrCat("--epochs=", epochs);
  Measurement local{.bench = "main_job",
                    .case_name = name,
                    .unit = "samples/s",
                    .peer = "local"};
  Measurement pytorch = local;
  pytorch.peer = "pytorch";
  for (int turn = 0; turn < (quick ? 5 : 15); ++turn) {
    ASSIGN_OR_RETURN(const double value,
                     SamplesPerSecond({"--servers=1", epochs_flag,
                                       absl::StrCat("--trainers=", trainers)}));
    ASSIGN_OR_RETURN(const double of_local,
                     SamplesPerSecond({"--local", epochs_flag}));
    local.values.push_back(value);
    local.peer_values.push_back(of_local);
    if (torch == nullptr) continue;
    ASSIGN_OR_RETURN(const double of_torch,
                     torch->AskNumber(absl::StrCat(epochs)));
    pytorch.values.push_back(value);
    pytorch.peer_values.push_back(of_torch);
  }
  Report(local);
  if (torch == nullptr) {
    ReportSkipped("main_job", name, "pytorch", torch_found);
  } else {
    Report(pytorch);
  }
  return absl::OkStatus();
}

absl::Status Run() {
  for (const int trainers : {1, 2}) {
    const std::string name = absl::StrCat("trainers_", trainers);
    if (!absl::StartsWith(name, absl::GetFlag(FLAGS_only))) continue;
    RETURN_IF_ERROR(Measure(name, trainers));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures the training speed of examples/mnist_ps.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "main_job: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
