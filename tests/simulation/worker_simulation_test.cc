// Whole workers under seeded faults: plain calls, references, streams,
// distributed autograd and distributed optimizers in one job. To repeat one
// seed: rpc/testing/simulation_seeds.h.

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/testing/stream_workload.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "rref/testing/reference_workload.h"
#include "tests/simulation/training_workload.h"

namespace hawser::tests {
namespace {

constexpr int kSteps = 20;
// One of so many seeds ends with checks that quotas were given back, which take
// longer than all the rest.
constexpr uint64_t kSeedsPerQuotaCheck = 8;

class WorkerSimulation {
 public:
  WorkerSimulation(uint64_t seed, bool verbose)
      : checks_quotas_(seed % kSeedsPerQuotaCheck == 0),
        job_(seed, {.verbose = verbose,
                    .configure =
                        [](rpc::AgentOptions& options) {
                          rref::ReferenceWorkload::AddService(options);
                          rpc::StreamWorkload::AddService(options);
                          TrainingWorkload::AddServices(options);
                        },
                    .on_end =
                        [this](const rpc::WorkerInfo& worker) {
                          references_.OnWorkerEnd(worker);
                          trainings_.OnWorkerEnd(worker);
                        }}) {
    references_.Attach(&job_);
    streams_.Attach(&job_);
    trainings_.Attach(&job_);
  }

  std::string Run() {
    job_.RestartDeparted();
    for (int step = 0; step < kSteps && job_.failure().empty(); ++step) {
      if (job_.random().Below(3) > 0) job_.RandomFault();
      if (job_.random().Below(3) == 0) job_.RestartDeparted();
      RandomActions();
      job_.Advance(absl::Milliseconds(job_.random().Below(1500)));
      references_.ForgetTheEnded();
      trainings_.ForgetTheEnded();
    }
    job_.ExpectConvergence();
    if (!job_.failure().empty()) return job_.failure();
    CheckAfterConvergence();
    return job_.failure();
  }

 private:
  void RandomActions() {
    for (int i = 0; i < 2; ++i) {
      const auto from = static_cast<int>(job_.random().Below(4));
      const auto to = static_cast<int>(job_.random().Below(4));
      if (job_.agent(from) != nullptr) job_.Call(from, to);
      references_.RandomAction();
    }
    streams_.OpenRandomStream();
    for (int i = 0; i < 6; ++i) trainings_.RandomAction();
  }

  void CheckAfterConvergence() {
    // Calls end, and all messages are handled.
    job_.Advance(TrainingWorkload::kLongest);
    references_.ForgetTheEnded();
    trainings_.ForgetTheEnded();
    streams_.CheckEnds();
    trainings_.CheckEnds();
    references_.CheckThatTheHeldLive();
    if (!job_.failure().empty()) return;
    streams_.CheckThatAllCanStream(
        checks_quotas_ ? rpc::StreamWorkload::kAllRounds : 1);
    trainings_.CheckThatAllCanTrain(
        checks_quotas_ ? TrainingWorkload::kAllRounds : 1);
    references_.DropAll();
    trainings_.DropAll();
    job_.Advance(rref::ReferenceWorkload::kSettling);
    references_.CheckThatNothingIsLeft();
    CheckCounters();
    job_.CheckStore();
    job_.CheckHistory();
  }

  // Nothing is left but what belongs to the pairs of workers.
  void CheckCounters() {
    for (int i = 0; i < job_.num_workers(); ++i) {
      for (const auto& [name, value] : job_.agent(i)->DebugInfo()) {
        const bool counts_content =
            absl::StartsWith(name, "rref.") ||
            absl::StartsWith(name, "stream.") ||
            absl::StartsWith(name, "dist_autograd.") ||
            absl::EndsWith(name, "active_calls") ||
            absl::EndsWith(name, "active_async_calls") ||
            absl::EndsWith(name, ".calls_outstanding");
        if (!counts_content || absl::StartsWith(name, "rref.control_") ||
            value == "0") {
          continue;
        }
        job_.Fail(absl::StrCat("w", i, " has ", name, " = ", value));
      }
    }
  }

  const bool checks_quotas_;
  // Destroyed after the job, whose functions use them.
  rref::ReferenceWorkload references_;
  rpc::StreamWorkload streams_;
  TrainingWorkload trainings_;
  rpc::ClusterSimulation job_;
};

using WorkerSeedsTest = rpc::SeedsTest;

TEST_P(WorkerSeedsTest, GuaranteesHoldForAllSeeds) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return WorkerSimulation(seed, verbose).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, WorkerSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::tests
