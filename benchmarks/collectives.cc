// Benchmark of collectives between processes of one machine, compared with
// peers in the same run.
//
//   ./bazelw run -c opt //benchmarks:collectives -- --quick
//
//   OPERATION_SIZE_PROCESSES   microseconds of one operation: all_reduce,
//                              all_gather, reduce_scatter or broadcast of a
//                              vector of f32 of that size; with 2 or 4
//                              processes
//   gloo/OPERATION_SIZE_PROCESSES   the same of the backend gloo, compared with
//                              Gloo alone
//   link/OPERATION_SIZE_4      the same of the backend gloo on two machines
//                              of two ranks each, which share memory: network
//                              namespaces joined by a link of 1 Gbit/s; 1 MiB,
//                              and without --quick 4 KiB and 16 MiB
//   all_reduce_64MiB_2 / sum   compared with adding one vector to another in
//                              both processes at once
//
// Peers:
//   gloo    over TCP on loopback, the fastest of its algorithms
//   mpi     Open MPI, over shared memory; it polls
//   torch   torch.distributed with Gloo; without --quick
//   sum     no communication
//   no_sharing   the backend gloo without shared memory
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
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
#include "async/status_macros.h"
#include "benchmarks/collectives_side.h"
#include "benchmarks/groups/shaped_link.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/temporary_directory.h"

ABSL_FLAG(bool, quick, false, "Finish within 90 seconds.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(int, serve, 0, "Internal: number of processes of Hawser's side.");
ABSL_FLAG(std::string, backend, "", "Internal: of the side's group.");
ABSL_FLAG(int, link_mbit_per_s, 0, "Internal: of the link between the ranks.");
ABSL_FLAG(int, ranks_per_machine, 1, "Internal: of the side's group.");
ABSL_FLAG(std::string, directory, "", "Internal: of the side's store.");

namespace hawser::benchmarks {
namespace {

// The sides of groups of one size.
struct Sides {
  std::unique_ptr<PeerProcess> host;
  std::unique_ptr<PeerProcess> gloo;
  std::vector<std::pair<std::string, std::unique_ptr<PeerProcess>>> peers;
};

std::string CompileAndRun(const std::string& compile, const std::string& run) {
  return absl::StrCat("dir=$1 && ", compile, " -o $dir/peer && ", run);
}

absl::StatusOr<std::unique_ptr<PeerProcess>> StartOurs(
    const std::string& backend, const std::string& count,
    const TemporaryDirectory& files) {
  return PeerProcess::Start(
      {"/proc/self/exe", absl::StrCat("--serve=", count),
       absl::StrCat("--backend=", backend),
       absl::StrCat("--directory=",
                    files.Make(absl::StrCat("hawser_", backend, count)))},
      "see the error above", PeerProcess::WhenIdle::kStopped);
}

absl::StatusOr<Sides> StartSides(int processes,
                                 const TemporaryDirectory& files) {
  Sides sides;
  const std::string count = absl::StrCat(processes);
  ASSIGN_OR_RETURN(sides.host, StartOurs("host", count, files));
  ASSIGN_OR_RETURN(sides.gloo, StartOurs("gloo", count, files));
  const auto start = [&](const std::string& name,
                         const std::vector<std::string>& command,
                         const std::string& packages) -> absl::Status {
    ASSIGN_OR_RETURN(
        auto peer,
        PeerProcess::Start(
            command,
            absl::StrCat("install the peer with: apt-get install ", packages),
            PeerProcess::WhenIdle::kStopped));
    sides.peers.emplace_back(name, std::move(peer));
    return absl::OkStatus();
  };
  const std::string gloo = files.Make("gloo" + count);
  RETURN_IF_ERROR(start(
      "gloo",
      {"/bin/sh", "-c",
       CompileAndRun("g++ -std=c++17 -O2 benchmarks/peers/collectives_gloo.cc "
                     "-lgloo -lpthread",
                     "mkdir $dir/store && exec $dir/peer $2 $dir/store"),
       "sh", gloo, count},
      "g++ libgloo-dev"));
  RETURN_IF_ERROR(start(
      "mpi",
      {"/bin/sh", "-c",
       CompileAndRun("mpicc -O2 benchmarks/peers/collectives_mpi.c",
                     "exec mpirun --allow-run-as-root --oversubscribe -np $2 "
                     "$dir/peer"),
       "sh", files.Make("mpi" + count), count},
      "gcc openmpi-bin libopenmpi-dev"));
  if (!absl::GetFlag(FLAGS_quick)) {
    RETURN_IF_ERROR(start("torch",
                          {absl::GetFlag(FLAGS_python),
                           "benchmarks/peers/collectives_torch.py", count},
                          "python3-torch libopenblas0-pthread"));
  }
  return sides;
}

// Names of cases and their sides, which are measured beside one turn of a peer.
using Cases = std::vector<std::pair<std::string, PeerProcess*>>;

absl::Status Measure(const Cases& cases, const std::string& request,
                     const std::string& peer_name, PeerProcess& peer,
                     const std::string& peer_request, int turns) {
  std::vector<Measurement> measurements;
  for (const auto& [name, side] : cases) {
    measurements.push_back({.bench = "collectives",
                            .case_name = name,
                            .unit = "us",
                            .better = Better::kLower,
                            .peer = peer_name});
  }
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double peer_value, peer.AskNumber(peer_request));
    for (size_t i = 0; i < cases.size(); ++i) {
      ASSIGN_OR_RETURN(const double value, cases[i].second->AskNumber(request));
      measurements[i].values.push_back(value);
      measurements[i].peer_values.push_back(peer_value);
    }
  }
  for (const Measurement& measurement : measurements) Report(measurement);
  return absl::OkStatus();
}

struct Size {
  const char* name;
  int64_t bytes;
};

constexpr const char* kOperations[] = {"all_reduce", "all_gather",
                                       "reduce_scatter", "broadcast"};
constexpr int kLinkMbitPerS = 1000;

absl::StatusOr<std::unique_ptr<PeerProcess>> StartOnLink(
    int ranks_per_machine, const TemporaryDirectory& files) {
  return PeerProcess::Start(
      {"/proc/self/exe", "--serve=4", "--backend=gloo",
       absl::StrCat("--link_mbit_per_s=", kLinkMbitPerS),
       absl::StrCat("--ranks_per_machine=", ranks_per_machine),
       absl::StrCat("--directory=",
                    files.Make(absl::StrCat("link", ranks_per_machine)))},
      "see the error above", PeerProcess::WhenIdle::kStopped);
}

absl::Status MeasureLink(const std::string& only, bool quick) {
  constexpr Size kSizes[] = {
      {"1MiB", 1 << 20}, {"4KiB", 4 << 10}, {"16MiB", 16 << 20}};
  if (const absl::Status link = ShapedLink::Create(kLinkMbitPerS).status();
      !link.ok()) {
    ReportSkipped("collectives", "link", "no_sharing", link);
    return absl::OkStatus();
  }
  const TemporaryDirectory files;
  std::unique_ptr<PeerProcess> sharing;
  std::unique_ptr<PeerProcess> peer;
  for (const char* const operation : kOperations) {
    for (const Size& size : std::span(kSizes).first(quick ? 1 : 3)) {
      const std::string name =
          absl::StrCat("link/", operation, "_", size.name, "_4");
      if (!absl::StartsWith(name, only)) continue;
      if (sharing == nullptr) {
        ASSIGN_OR_RETURN(sharing, StartOnLink(2, files));
        ASSIGN_OR_RETURN(peer, StartOnLink(1, files));
      }
      const std::string request = absl::StrCat(operation, " ", size.bytes);
      RETURN_IF_ERROR(Measure({{name, sharing.get()}}, request, "no_sharing",
                              *peer, request, quick ? 1 : 5));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureLoopback(const std::string& only, bool quick) {
  constexpr Size kSizes[] = {{"4KiB", 4 << 10},
                             {"1MiB", 1 << 20},
                             {"16MiB", 16 << 20},
                             {"64MiB", 64 << 20}};
  const int turns = quick ? 1 : 5;
  TemporaryDirectory files;
  for (const int processes : {2, 4}) {
    ASSIGN_OR_RETURN(const Sides sides, StartSides(processes, files));
    for (const std::string operation : kOperations) {
      for (const Size& size : kSizes) {
        const std::string name =
            absl::StrCat(operation, "_", size.name, "_", processes);
        const std::string over_gloo = absl::StrCat("gloo/", name);
        const bool with_host = absl::StartsWith(name, only);
        const bool with_gloo = absl::StartsWith(over_gloo, only);
        const std::string request = absl::StrCat(operation, " ", size.bytes);
        for (const auto& [peer_name, peer] : sides.peers) {
          // PyTorch's Gloo has none.
          if (peer_name == "torch" && operation == "reduce_scatter") continue;
          Cases cases;
          if (with_gloo && peer_name == "gloo") {
            cases.emplace_back(over_gloo, sides.gloo.get());
          }
          if (with_host) cases.emplace_back(name, sides.host.get());
          if (cases.empty()) continue;
          RETURN_IF_ERROR(
              Measure(cases, request, peer_name, *peer, request, turns));
        }
        if (with_host && operation == "all_reduce" && processes == 2 &&
            size.bytes == 64 << 20) {
          RETURN_IF_ERROR(Measure({{name, sides.host.get()}}, request, "sum",
                                  *sides.host, absl::StrCat("sum ", size.bytes),
                                  turns));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Run() {
  const bool quick = absl::GetFlag(FLAGS_quick);
  const std::string only = absl::GetFlag(FLAGS_only);
  if (!absl::StartsWith(only, "link/")) {
    RETURN_IF_ERROR(MeasureLoopback(only, quick));
  }
  return MeasureLink(only, quick);
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures collectives and compares them with peers.");
  absl::ParseCommandLine(argc, argv);
  if (const int processes = absl::GetFlag(FLAGS_serve); processes > 0) {
    return hawser::benchmarks::ServeCollectives(
        {.processes = processes,
         .directory = absl::GetFlag(FLAGS_directory),
         .backend = absl::GetFlag(FLAGS_backend),
         .link_mbit_per_s = absl::GetFlag(FLAGS_link_mbit_per_s),
         .ranks_per_machine = absl::GetFlag(FLAGS_ranks_per_machine)});
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "collectives: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
