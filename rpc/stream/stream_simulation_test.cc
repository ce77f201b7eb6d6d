// Streams under seeded faults. To repeat one seed, see
// rpc/testing/simulation_seeds.h.

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/stream/testing/stream_workload.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"

namespace hawser::rpc {
namespace {

constexpr int kSteps = 25;

std::string Simulate(uint64_t seed, bool verbose) {
  // Destroyed after the job, whose functions and readers use it.
  StreamWorkload streams;
  ClusterSimulation job(
      seed, {.verbose = verbose, .configure = &StreamWorkload::AddService});
  streams.Attach(&job);
  job.RestartDeparted();
  for (int step = 0; step < kSteps; ++step) {
    job.RandomFault();
    for (int i = 0; i < 2; ++i) streams.OpenRandomStream();
    job.Advance(absl::Milliseconds(job.random().Below(1500)));
  }
  job.ExpectConvergence();
  job.Advance(StreamWorkload::kLongest);
  streams.CheckEnds();
  if (job.failure().empty()) {
    streams.CheckThatAllCanStream(StreamWorkload::kAllRounds);
  }
  return job.failure();
}

using StreamSeedsTest = SeedsTest;

TEST_P(StreamSeedsTest, GuaranteesOfStreamsHoldForAllSeeds) {
  RunSeeds(Simulate);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamSeedsTest,
                         testing::ValuesIn(SeedsOfCases()));

}  // namespace
}  // namespace hawser::rpc
