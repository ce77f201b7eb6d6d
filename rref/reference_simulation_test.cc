// References under seeded random faults, checked against the guarantees of
// docs/rref.md. To repeat one seed: rpc/testing/simulation_seeds.h.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "rref/testing/reference_workload.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr int kSteps = 25;

std::string Simulate(uint64_t seed, bool verbose) {
  // Destroyed after the job, whose functions use it.
  ReferenceWorkload references;
  rpc::ClusterSimulation job(seed,
                             {.verbose = verbose,
                              .configure = &ReferenceWorkload::AddService,
                              .on_end = [&](const rpc::WorkerInfo& worker) {
                                references.OnWorkerEnd(worker);
                              }});
  references.Attach(&job);
  job.RestartDeparted();
  for (int step = 0; step < kSteps; ++step) {
    job.RandomFault();
    for (int i = 0; i < 4; ++i) references.RandomAction();
    job.Advance(absl::Milliseconds(job.random().Below(1500)));
    references.ForgetTheEnded();
  }
  job.ExpectConvergence();
  // Calls end, and all messages are handled.
  job.Advance(absl::Seconds(10) + ReferenceWorkload::kSettling);
  references.ForgetTheEnded();
  if (job.failure().empty()) references.CheckThatTheHeldLive();
  references.DropAll();
  job.Advance(absl::Seconds(5) + ReferenceWorkload::kSettling);
  if (job.failure().empty()) references.CheckThatNothingIsLeft();
  return job.failure();
}

using ReferenceSeedsTest = rpc::SeedsTest;

TEST_P(ReferenceSeedsTest, GuaranteesHoldForAllSeeds) { RunSeeds(Simulate); }

// The creation does not arrive, while a call that waits for its value is
// served.
TEST(ReferenceSimulationTest, LeavingDoesNotWaitForValuesThatAreNeverCreated) {
  constexpr rpc::Function<int64_t()> kCount{"test.Count"};
  constexpr rpc::Function<int64_t(RRef<int64_t>)> kReadCount{"test.ReadCount"};
  constexpr rpc::Function<int64_t(RRef<int64_t>)> kAskOwner{"test.AskOwner"};
  const rpc::CallOptions options{.timeout = absl::Minutes(2)};
  rpc::ClusterSimulation job(
      /*seed=*/1, {.num_workers = 3, .configure = [](rpc::AgentOptions& agent) {
                     agent.services.push_back(std::make_unique<RRefService>(
                         RRefOptions{.wait_for_users = false}));
                   }});
  bool waits = false;
  ASSERT_THAT(job.registry().Register(kCount, [] { return int64_t{1}; }),
              IsOk());
  ASSERT_THAT(job.registry().Register(kReadCount,
                                      [&](RRef<int64_t> rref) {
                                        waits = true;
                                        return rref.ToHereAsync();
                                      }),
              IsOk());
  ASSERT_THAT(
      job.registry().Register(kAskOwner,
                              [&](RRef<int64_t> rref) {
                                return rpc::CurrentCall::Get()->agent().Async(
                                    rref.owner(), options, kReadCount, rref);
                              }),
      IsOk());
  job.RestartDeparted();
  job.Advance(absl::Milliseconds(100));

  job.Block(0, 1, true);
  const absl::StatusOr<RRef<int64_t>> made =
      Remote(*job.agent(0), "w1", options, kCount);
  ASSERT_THAT(made, IsOk());
  const async::Future<int64_t> read =
      job.agent(0)->Async("w2", options, kAskOwner, *made);
  job.Advance(absl::Milliseconds(200));
  ASSERT_TRUE(waits);
  ASSERT_FALSE(read.ready());

  job.Leave(1);
  // The leave notice to w0 takes three seconds, because its reply does not
  // arrive.
  job.Advance(absl::Seconds(5));
  ASSERT_TRUE(read.ready());
  EXPECT_THAT(read.result(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("will not be created")));
  EXPECT_EQ(job.agent(1), nullptr) << "w1 has not left yet";
  EXPECT_EQ(job.failure(), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::rref
