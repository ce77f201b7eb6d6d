// Benchmark of remote calls between two processes of one machine, compared with
// peers in the same run.
//
//   ./bazelw run -c opt //benchmarks:rpc -- --quick
//
//   small_call_p50            microseconds per call, one in flight, over the
//                             socket
//   small_call_same_host_p50  the same through shared memory
//   *_busy_poll               the same with threads that poll without sleeping
//   calls_64_in_flight        calls per second
//   remote_to_here            references created and fetched per second
//   tensor_*_tcp              bytes per second of tensors in one direction, one
//                             in flight, over the socket
//   tensor_*_same_host        the same through shared memory
//   tensor_64KiB_same_host    the same for 64 KiB
//   small_call_pool_p50       small_call_same_host_p50 of a function that runs
//                             on the callee's executor, compared with one that
//                             runs inline
//   calls_threads_*           blocking calls per second from several threads,
//                             through shared memory, compared with one thread
//   reply_*                   bytes per second of tensors as replies, compared
//                             with requests of the same size
//   outstanding_10000         bytes of heap per waiting call, compared with
//                             4 KiB
//
// Peers:
//   raw_grpc    gRPC's completion queues without a layer above, with 64 bytes
//   in
//               each direction; compared with calls over the socket
//   pytorch     torch.distributed.rpc with its default transports and a
//   built-in
//               function on tensors of one element; compared with Hawser's
//               default transport, except for small_call_p50
//   pytorch_uv  the same over sockets only
//   tensorpipe  over shm and cma
//   memcpy
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
// PyTorch and TensorPipe poll shared memory without sleeping, so they are
// stopped outside of their turns. With *_busy_poll Hawser does the same, so all
// turns of the peer come first.
#include <cstdint>
#include <cstdio>
#include <functional>
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
#include "async/status_macros.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_asked_side.h"
#include "benchmarks/rpc_side.h"
#include "benchmarks/store_process.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");
ABSL_FLAG(std::string, serve, "",
          "Internal: the server that this process runs.");
ABSL_FLAG(std::string, call, "",
          "Internal: the side whose caller this process runs.");
ABSL_FLAG(std::string, store, "", "Internal: address of the workers' store.");
ABSL_FLAG(bool, same_host, true, "Internal: HawserWay::same_host.");
ABSL_FLAG(bool, busy_poll, false, "Internal: HawserWay::busy_poll.");

namespace hawser::benchmarks {
namespace {

constexpr int64_t kMiB = 1 << 20;

HawserWay WayOfThisProcess() {
  return {.same_host = absl::GetFlag(FLAGS_same_host),
          .busy_poll = absl::GetFlag(FLAGS_busy_poll)};
}

// The callers of these sides run in separate processes.
absl::StatusOr<std::unique_ptr<RpcSide>> HawserSide(HawserWay way) {
  return StartAskedSide({"/proc/self/exe", "--call=hawser",
                         absl::StrCat("--same_host=", way.same_host),
                         absl::StrCat("--busy_poll=", way.busy_poll)},
                        "see the error above", PeerProcess::WhenIdle::kRuns);
}
absl::StatusOr<std::unique_ptr<RpcSide>> RawGrpcSide() {
  return StartAskedSide({"/proc/self/exe", "--call=raw_grpc"},
                        "see the error above", PeerProcess::WhenIdle::kRuns);
}

using Turn = std::function<absl::StatusOr<double>(RpcSide&)>;

struct Case {
  std::string name;
  std::string unit;
  Better better;
  RpcSide* ours;
  std::string peer;
  RpcSide* side;
  Turn turn;
  // If the peer's turn is another one.
  Turn peer_turn = nullptr;
};

bool IsChosen(const std::string& name) {
  return absl::StartsWith(name, absl::GetFlag(FLAGS_only));
}

absl::Status Measure(const Case& what, int turns) {
  Measurement measurement{.bench = "rpc",
                          .case_name = what.name,
                          .unit = what.unit,
                          .better = what.better,
                          .peer = what.peer};
  const Turn& peer_turn =
      what.peer_turn == nullptr ? what.turn : what.peer_turn;
  // Connects and warms up.
  RETURN_IF_ERROR(what.turn(*what.ours).status());
  RETURN_IF_ERROR(peer_turn(*what.side).status());
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double value, what.turn(*what.ours));
    ASSIGN_OR_RETURN(const double peer_value, peer_turn(*what.side));
    measurement.values.push_back(value);
    measurement.peer_values.push_back(peer_value);
  }
  Report(measurement);
  return absl::OkStatus();
}

absl::Status MeasureOutstanding(int64_t calls) {
  // New processes, so that their heaps contain nothing else.
  ASSIGN_OR_RETURN(const auto side, HawserSide({}));
  ASSIGN_OR_RETURN(const double bytes, side->Outstanding(calls));
  Report({.bench = "rpc",
          .case_name = absl::StrCat("outstanding_", calls),
          .unit = "bytes/call",
          .better = Better::kLower,
          .peer = "bound",
          .values = {bytes},
          .peer_values = {4096}});
  return absl::OkStatus();
}

// Runs last, with new workers. They use all cores, so all turns of the peer
// come first.
absl::Status MeasureBusyPolling(RpcSide& raw, RpcSide& tensorpipe,
                                const Turn& small_call, int turns) {
  for (const bool same_host : {false, true}) {
    Measurement measurement{.bench = "rpc",
                            .case_name = same_host ? "small_call_same_host_p50_"
                                                     "busy_poll"
                                                   : "small_call_p50_busy_poll",
                            .unit = "us",
                            .better = Better::kLower,
                            .peer = same_host ? "tensorpipe" : "raw_grpc"};
    if (!IsChosen(measurement.case_name)) continue;
    RpcSide& peer = same_host ? tensorpipe : raw;
    RETURN_IF_ERROR(small_call(peer).status());
    for (int turn = 0; turn < turns; ++turn) {
      ASSIGN_OR_RETURN(const double value, small_call(peer));
      measurement.peer_values.push_back(value);
    }
    ASSIGN_OR_RETURN(const auto ours,
                     HawserSide({.same_host = same_host, .busy_poll = true}));
    RETURN_IF_ERROR(small_call(*ours).status());
    for (int turn = 0; turn < turns; ++turn) {
      ASSIGN_OR_RETURN(const double value, small_call(*ours));
      measurement.values.push_back(value);
    }
    Report(measurement);
  }
  return absl::OkStatus();
}

absl::Status Run() {
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int turns = quick ? 9 : 25;
  const int64_t scale = quick ? 1 : 3;
  const std::string python = absl::GetFlag(FLAGS_python);
  ASSIGN_OR_RETURN(const auto ours, HawserSide({}));
  ASSIGN_OR_RETURN(const auto socket, HawserSide({.same_host = false}));
  ASSIGN_OR_RETURN(const auto raw, RawGrpcSide());
  ASSIGN_OR_RETURN(const auto torch, StartPyTorchSide(python, "", ""));
  ASSIGN_OR_RETURN(const auto torch_uv,
                   StartPyTorchSide(python, "uv", "basic"));
  ASSIGN_OR_RETURN(const auto tensorpipe, StartTensorPipeSide("shm", "cma"));
  const auto copy = MakeMemcpySide();

  const Turn small_call = [&](RpcSide& side) {
    return side.SmallCall(400 * scale);
  };
  const Turn small_tensor_call = [&](RpcSide& side) {
    return side.SmallTensorCall(400 * scale);
  };
  const Turn in_flight = [&](RpcSide& side) {
    return side.CallsInFlight(10000 * scale, 64);
  };
  const Turn tensors_in_flight = [&](RpcSide& side) {
    return side.TensorCallsInFlight(2000 * scale, 64);
  };
  const Turn remote_to_here = [&](RpcSide& side) {
    return side.RemoteToHere(500 * scale);
  };
  const auto one_way = [scale](int64_t mib) -> Turn {
    return [mib, scale](RpcSide& side) {
      return side.OneWay(scale * 64 / mib + 4, mib * kMiB);
    };
  };
  constexpr Better kLower = Better::kLower;
  constexpr Better kHigher = Better::kHigher;
  std::vector<Case> cases = {
      {"small_call_p50", "us", kLower, socket.get(), "raw_grpc", raw.get(),
       small_call},
      {"small_call_p50", "us", kLower, socket.get(), "pytorch", torch.get(),
       small_tensor_call},
      {"small_call_same_host_p50", "us", kLower, ours.get(), "tensorpipe",
       tensorpipe.get(), small_call},
      {"calls_64_in_flight", "calls/s", kHigher, socket.get(), "raw_grpc",
       raw.get(), in_flight},
      {"calls_64_in_flight", "calls/s", kHigher, ours.get(), "pytorch",
       torch.get(), tensors_in_flight},
      {"remote_to_here", "1/s", kHigher, ours.get(), "pytorch", torch.get(),
       remote_to_here},
  };
  for (const int64_t mib : {1, 16}) {
    const std::string name = absl::StrCat("tensor_", mib, "MiB_tcp");
    cases.push_back({name, "bytes/s", kHigher, socket.get(), "raw_grpc",
                     raw.get(), one_way(mib)});
    cases.push_back({name, "bytes/s", kHigher, socket.get(), "pytorch_uv",
                     torch_uv.get(), one_way(mib)});
  }
  for (const int64_t mib : {1, 16, 64}) {
    const std::string name = absl::StrCat("tensor_", mib, "MiB_same_host");
    for (const auto& [peer, side] :
         {std::pair("memcpy", copy.get()), std::pair("pytorch", torch.get()),
          std::pair("tensorpipe", tensorpipe.get())}) {
      cases.push_back(
          {name, "bytes/s", kHigher, ours.get(), peer, side, one_way(mib)});
    }
  }
  cases.push_back({"tensor_64KiB_same_host", "bytes/s", kHigher, ours.get(),
                   "tensorpipe", tensorpipe.get(), [scale](RpcSide& side) {
                     return side.OneWay(500 * scale, int64_t{64} << 10);
                   }});
  cases.push_back(
      {"small_call_pool_p50", "us", kLower, ours.get(), "inline", ours.get(),
       [scale](RpcSide& side) { return side.PoolCall(400 * scale); },
       small_call});
  const auto from_threads = [scale](int64_t threads) -> Turn {
    return [threads, scale](RpcSide& side) {
      return side.CallsFromThreads(4000 * scale, threads);
    };
  };
  for (const int64_t threads : {4, 16}) {
    cases.push_back({absl::StrCat("calls_threads_", threads), "calls/s",
                     kHigher, ours.get(), "one_thread", ours.get(),
                     from_threads(threads), from_threads(1)});
  }
  for (const int64_t mib : {1, 16}) {
    for (const auto& [way, side] :
         {std::pair("tcp", socket.get()), std::pair("same_host", ours.get())}) {
      cases.push_back({absl::StrCat("reply_", mib, "MiB_", way), "bytes/s",
                       kHigher, side, "request", side,
                       [mib, scale](RpcSide& replier) {
                         return replier.Reply(scale * 64 / mib + 4, mib * kMiB);
                       },
                       one_way(mib)});
    }
  }
  for (const Case& what : cases) {
    if (IsChosen(what.name)) RETURN_IF_ERROR(Measure(what, turns));
  }
  RETURN_IF_ERROR(MeasureBusyPolling(*raw, *tensorpipe, small_call, turns));
  if (IsChosen("outstanding_10000")) RETURN_IF_ERROR(MeasureOutstanding(10000));
  return absl::OkStatus();
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures remote calls and compares them with peers.");
  absl::ParseCommandLine(argc, argv);
  const std::string serve = absl::GetFlag(FLAGS_serve);
  if (serve == "store") return hawser::benchmarks::ServeStore();
  if (serve == "hawser") {
    return hawser::benchmarks::ServeHawser(
        absl::GetFlag(FLAGS_store), hawser::benchmarks::WayOfThisProcess());
  }
  if (serve == "raw_grpc") return hawser::benchmarks::ServeRawGrpc();
  const std::string call = absl::GetFlag(FLAGS_call);
  if (call == "hawser") {
    return hawser::benchmarks::AnswerFor(hawser::benchmarks::StartHawserSide(
        hawser::benchmarks::WayOfThisProcess()));
  }
  if (call == "raw_grpc") {
    return hawser::benchmarks::AnswerFor(
        hawser::benchmarks::StartRawGrpcSide());
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "rpc: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
