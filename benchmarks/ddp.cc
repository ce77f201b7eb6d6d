// Benchmark of data-parallel training between processes of one machine,
// compared with PyTorch in the same run.
//
//   ./bazelw run -c opt //benchmarks:ddp -- --quick
//
//   mlp_2    steps per second of two processes that train a perceptron
//            784-512-512-10, with batches of 128 in each, SGD, and one thread
//            in each
//   mlp_2 / alone   compared with one process without communication, of which
//                   another copy runs at the same time
//   overlap_1gbit_2   two processes with one thread each, joined by a link of
//                     1 Gbit/s in each direction (ShapedLink) and the backend
//                     gloo, that train a perceptron 784-1024-...-1024-10 with
//                     eight hidden layers, 33 MB of gradients, and batches of
//                     1280. Backward pass and communication take about as long.
//
// Case overlap_1gbit_2 needs root, `ip` and `tc`; without, it prints a line
// with "skipped" that says why. It prints three lines, from these times, of
// turns that alternate (overlap_side.h):
//
//   T_overlap   a step of DistributedDataParallel
//   T_serial    the same step, but no reduction begins before the backward pass
//               has computed all gradients
//   T_alone     a step without communication, in both processes at once
//   T_backward  the backward pass of T_alone
//   T_comm      the reductions of a step, without computing
//
//   hideable    the part of the communication that the backward pass hides, of
//               what could be hidden: (T_serial - T_overlap) /
//               min(T_comm, T_backward). Even an ideal program stays below 1:
//               the last bucket is ready when the backward pass ends, and
//               communication uses the cores that compute.
//   serial      T_serial / T_overlap: the gain by overlap
//   alone       T_alone / T_overlap: 1 if communication cost nothing
//
// Peers:
//   torch   DistributedDataParallel with Gloo
//   alone, serial, hideable
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "benchmarks/groups/group_processes.h"
#include "benchmarks/groups/mlp_trainer.h"
#include "benchmarks/groups/overlap_side.h"
#include "benchmarks/groups/shaped_link.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/temporary_directory.h"
#include "collectives/process_group.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");
ABSL_FLAG(std::string, serve, "",
          "Internal: \"training\" or \"overlap\", Hawser's sides.");
ABSL_FLAG(std::string, directory, "", "Internal: of the side's store.");

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;

constexpr int kSteps = 40;
constexpr int kLinkMbitPerS = 1000;
constexpr char kOverlap[] = "overlap_1gbit_2";

GroupReply MakeReply(ProcessGroup& group) {
  auto created =
      MlpTrainer::Create(group, {.sizes = {784, 512, 512, 10}, .batch = 128});
  HAWSER_CHECK(created.ok()) << created.status();
  return [trainer = std::shared_ptr<MlpTrainer>(*std::move(created))](
             ProcessGroup& of,
             const std::string& request) -> absl::StatusOr<double> {
    RETURN_IF_ERROR(of.Barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) {
      RETURN_IF_ERROR(trainer->Step(request == "together").status());
    }
    RETURN_IF_ERROR(of.Barrier());
    return kSteps / std::chrono::duration<double>(
                        std::chrono::steady_clock::now() - begin)
                        .count();
  };
}

absl::Status Measure(const std::string& peer_name, PeerProcess& ours,
                     PeerProcess& peer, int turns) {
  Measurement measurement{.bench = "ddp",
                          .case_name = "mlp_2",
                          .unit = "steps/s",
                          .peer = peer_name};
  RETURN_IF_ERROR(ours.AskNumber("together").status());
  RETURN_IF_ERROR(peer.AskNumber("alone").status());
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double value, ours.AskNumber("together"));
    ASSIGN_OR_RETURN(const double peer_value, peer.AskNumber("alone"));
    measurement.values.push_back(value);
    measurement.peer_values.push_back(peer_value);
  }
  Report(measurement);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PeerProcess>> StartOurs(
    const std::string& mode, const std::string& directory) {
  return PeerProcess::Start({"/proc/self/exe", absl::StrCat("--serve=", mode),
                             absl::StrCat("--directory=", directory)},
                            "see the error above",
                            PeerProcess::WhenIdle::kStopped);
}

absl::Status MeasureTraining(const TemporaryDirectory& files, int turns) {
  ASSIGN_OR_RETURN(const auto ours, StartOurs("training", files.Make("mlp")));
  ASSIGN_OR_RETURN(
      const auto torch,
      PeerProcess::Start(
          {absl::GetFlag(FLAGS_python), "benchmarks/peers/ddp_torch.py", "2"},
          "install the peer with: apt-get install python3-torch "
          "libopenblas0-pthread",
          PeerProcess::WhenIdle::kStopped));
  RETURN_IF_ERROR(Measure("torch", *ours, *torch, turns));
  return Measure("alone", *ours, *ours, turns);
}

absl::Status MeasureOverlap(const TemporaryDirectory& files, int turns) {
  if (const absl::Status link = ShapedLink::Create(kLinkMbitPerS).status();
      !link.ok()) {
    ReportSkipped("ddp", kOverlap, "hideable", link);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto ours,
                   StartOurs("overlap", files.Make("overlap")));
  // The buckets are assigned anew before the second pass.
  RETURN_IF_ERROR(ours->AskNumber("overlap").status());
  RETURN_IF_ERROR(ours->AskNumber("overlap").status());
  Measurement hidden{
      .bench = "ddp", .case_name = kOverlap, .unit = "ms", .peer = "hideable"};
  Measurement gain{.bench = "ddp",
                   .case_name = kOverlap,
                   .unit = "ms/step",
                   .better = Better::kLower,
                   .peer = "serial"};
  Measurement cost = gain;
  cost.peer = "alone";
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double serial, ours->AskNumber("serial"));
    ASSIGN_OR_RETURN(const double overlap, ours->AskNumber("overlap"));
    ASSIGN_OR_RETURN(const double alone, ours->AskNumber("alone"));
    ASSIGN_OR_RETURN(const double backward, ours->AskNumber("backward"));
    ASSIGN_OR_RETURN(const double comm, ours->AskNumber("communication"));
    std::fprintf(stderr,
                 "%s: T_serial %.0f, T_overlap %.0f, T_alone %.0f, T_backward "
                 "%.0f, T_comm %.0f ms\n",
                 kOverlap, serial, overlap, alone, backward, comm);
    hidden.values.push_back(serial - overlap);
    hidden.peer_values.push_back(std::min(comm, backward));
    gain.values.push_back(overlap);
    gain.peer_values.push_back(serial);
    cost.values.push_back(overlap);
    cost.peer_values.push_back(alone);
  }
  Report(hidden);
  Report(gain);
  Report(cost);
  return absl::OkStatus();
}

absl::Status Run() {
  const bool quick = absl::GetFlag(FLAGS_quick);
  const TemporaryDirectory files;
  const std::string only = absl::GetFlag(FLAGS_only);
  if (absl::StartsWith("mlp_2", only)) {
    RETURN_IF_ERROR(MeasureTraining(files, quick ? 5 : 15));
  }
  if (!absl::StartsWith(kOverlap, only)) return absl::OkStatus();
  return MeasureOverlap(files, quick ? 7 : 21);
}

int Serve(const std::string& mode) {
  ServeGroupOptions options{.processes = 2,
                            .directory = absl::GetFlag(FLAGS_directory)};
  if (mode == "training") return ServeGroup(options, MakeReply);
  options.backend = "gloo";
  options.link_mbit_per_s = kLinkMbitPerS;
  return ServeGroup(options, MakeOverlapReply);
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures data-parallel training and compares it with PyTorch.");
  absl::ParseCommandLine(argc, argv);
  if (const std::string mode = absl::GetFlag(FLAGS_serve); !mode.empty()) {
    return hawser::benchmarks::Serve(mode);
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "ddp: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
