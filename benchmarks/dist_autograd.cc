// Benchmark of backward passes through nested remote calls, compared with
// PyTorch in the same run.
//
//   ./bazelw run -c opt //benchmarks:dist_autograd -- --quick
//
// chain_N: two workers on this machine. The first opens a context and calls the
// second with a tensor of 16 floats; each function calls the other worker, N
// calls deep. Then it runs the backward pass and reads the gradient. Functions
// and workers have default options.
//   chain_N_tcp  the same without shared memory, against PyTorch's `uv`
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
#include "dist_autograd/dist_autograd.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
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
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/store_process.h"
#include "launch/worker.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "store/grpc/store.h"
#include "tensor/tensor.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");
ABSL_FLAG(std::string, serve, "",
          "Internal: what this process serves, store or worker.");
ABSL_FLAG(std::string, store, "", "Internal: address of the workers' store.");
ABSL_FLAG(bool, same_host, true,
          "Internal: whether the workers use shared memory.");

namespace hawser::benchmarks {
namespace {

constexpr int64_t kFloats = 16;

// Returns x * 2^calls, by as many nested calls.
inline constexpr rpc::Function<Tensor(Tensor, int64_t)> kDouble{"bench.Double"};

absl::StatusOr<Tensor> Double(Tensor x, int64_t calls) {
  if (calls > 1) {
    rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
    const std::string other = agent.info().name == "w0" ? "w1" : "w0";
    ASSIGN_OR_RETURN(x, agent.Sync(other, kDouble, x, calls - 1));
  }
  return autograd::Add(x, x);
}

// A worker of the job.
struct Member {
  std::unique_ptr<store::GrpcStore> store;
  std::unique_ptr<rpc::FunctionRegistry> registry;
  std::unique_ptr<launch::Worker> worker;
};

absl::StatusOr<Member> Join(int rank, const std::string& store_address,
                            bool same_host) {
  Member member;
  member.registry = std::make_unique<rpc::FunctionRegistry>();
  RETURN_IF_ERROR(member.registry->Register(kDouble, Double));
  ASSIGN_OR_RETURN(member.store,
                   store::GrpcStore::Connect({.address = store_address}));
  ASSIGN_OR_RETURN(
      member.worker,
      launch::Worker::Start(
          {.identity = {.name = absl::StrCat("w", rank), .rank = rank},
           .meeting_place = {.store = member.store.get()},
           .registry = member.registry.get(),
           .network = {.grpc = {.same_host = same_host}}}));
  return member;
}

absl::Status Serve() {
  ASSIGN_OR_RETURN(const Member member, Join(1, absl::GetFlag(FLAGS_store),
                                             absl::GetFlag(FLAGS_same_host)));
  std::cout << "ready" << std::endl;
  std::cin.get();
  return member.worker->Shutdown(/*graceful=*/false);
}

// Two workers, the second in another process.
class Job {
 public:
  static absl::StatusOr<std::unique_ptr<Job>> Start(bool same_host) {
    auto job = std::make_unique<Job>();
    ASSIGN_OR_RETURN(job->store_, StartStoreProcess());
    const std::string address = job->store_->description();
    ASSIGN_OR_RETURN(job->other_, PeerProcess::Start(
                                      {"/proc/self/exe", "--serve=worker",
                                       absl::StrCat("--store=", address),
                                       absl::StrCat("--same_host=", same_host)},
                                      "see the error above"));
    ASSIGN_OR_RETURN(job->member_, Join(0, address, same_host));
    RETURN_IF_ERROR(autograd::SetRequiresGrad(job->x_));
    return job;
  }

  absl::StatusOr<double> PassesPerSecond(int64_t calls, int64_t passes) {
    ASSIGN_OR_RETURN(const Tensor gradient, Pass(calls));
    const float expected = std::ldexp(1.0F, static_cast<int>(calls));
    for (const float value : gradient.ToVector<float>()) {
      if (value != expected) {
        return absl::InternalError(
            absl::StrCat("the gradient is ", value, ", expected: ", expected));
      }
    }
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < passes; ++i) RETURN_IF_ERROR(Pass(calls).status());
    return static_cast<double>(passes) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
               .count();
  }

 private:
  absl::StatusOr<Tensor> Pass(int64_t calls) {
    rpc::Agent& agent = member_.worker->agent();
    ASSIGN_OR_RETURN(const auto context,
                     dist_autograd::ContextScope::Open(agent));
    ASSIGN_OR_RETURN(const Tensor y, agent.Sync("w1", kDouble, x_, calls));
    ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(y));
    RETURN_IF_ERROR(dist_autograd::Backward(agent, context->id(), {sum}));
    ASSIGN_OR_RETURN(const dist_autograd::Gradients gradients,
                     dist_autograd::GetGradients(agent, context->id()));
    return dist_autograd::FindGradient(gradients, x_);
  }

  std::unique_ptr<PeerProcess> store_;
  std::unique_ptr<PeerProcess> other_;
  Member member_;
  Tensor x_ = Tensor::Ones({kFloats});
};

using Passes = std::function<absl::StatusOr<double>(int64_t passes)>;

absl::Status Measure(const std::string& name, const std::string& peer,
                     const Passes& ours, const Passes& theirs, int turns,
                     double turn_seconds) {
  // The number of passes that take about `turn_seconds`. Also warms up.
  const auto passes_in = [&](const Passes& run) -> absl::StatusOr<int64_t> {
    RETURN_IF_ERROR(run(50).status());
    ASSIGN_OR_RETURN(const double rate, run(50));
    return std::max<int64_t>(10, static_cast<int64_t>(rate * turn_seconds));
  };
  ASSIGN_OR_RETURN(const int64_t our_passes, passes_in(ours));
  ASSIGN_OR_RETURN(const int64_t peer_passes, passes_in(theirs));
  Measurement measurement{.bench = "dist_autograd",
                          .case_name = name,
                          .unit = "passes/s",
                          .peer = peer};
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double value, ours(our_passes));
    ASSIGN_OR_RETURN(const double peer_value, theirs(peer_passes));
    measurement.values.push_back(value);
    measurement.peer_values.push_back(peer_value);
  }
  Report(measurement);
  return absl::OkStatus();
}

absl::Status MeasureWay(bool same_host, const std::vector<int64_t>& depths) {
  const bool quick = absl::GetFlag(FLAGS_quick);
  std::unique_ptr<Job> job;
  std::unique_ptr<PeerProcess> peer;
  for (const int64_t calls : depths) {
    const std::string name =
        absl::StrCat("chain_", calls, same_host ? "" : "_tcp");
    if (!absl::StartsWith(name, absl::GetFlag(FLAGS_only))) continue;
    if (job == nullptr) {
      ASSIGN_OR_RETURN(job, Job::Start(same_host));
      ASSIGN_OR_RETURN(
          peer,
          PeerProcess::Start({absl::GetFlag(FLAGS_python),
                              "benchmarks/peers/dist_autograd_torch.py",
                              same_host ? "" : "uv", same_host ? "" : "basic"},
                             "install the peer with: apt-get install "
                             "python3-torch libopenblas0-pthread"));
    }
    RETURN_IF_ERROR(Measure(
        name, same_host ? "pytorch" : "pytorch_uv",
        [&](int64_t passes) { return job->PassesPerSecond(calls, passes); },
        [&](int64_t passes) {
          return peer->AskNumber(absl::StrCat(calls, " ", passes));
        },
        quick ? 9 : 25, quick ? 0.25 : 1.0));
  }
  return absl::OkStatus();
}

absl::Status Run() {
  RETURN_IF_ERROR(MeasureWay(/*same_host=*/true, {1, 2, 4, 8}));
  return MeasureWay(/*same_host=*/false, {2, 8});
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures backward passes through remote calls.");
  absl::ParseCommandLine(argc, argv);
  const std::string serve = absl::GetFlag(FLAGS_serve);
  if (serve == "store") return hawser::benchmarks::ServeStore();
  const absl::Status status = serve == "worker" ? hawser::benchmarks::Serve()
                                                : hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "dist_autograd: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
