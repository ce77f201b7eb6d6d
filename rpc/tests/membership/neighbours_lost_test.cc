// G10 of docs/rpc/guarantees.md for workers of neighbouring ranks that die
// together: each watches the leases of the next two, so that the leases of most
// of the dead are watched only by other dead workers.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/cluster_simulation.h"

namespace hawser::rpc {
namespace {

constexpr int kWorkers = 12;
constexpr absl::Duration kLimit = absl::Milliseconds(3500);
// If more than three in four die: they look like workers that stand still.
constexpr absl::Duration kLimitOfMost = absl::Milliseconds(12'500);

class NeighboursLostTest : public testing::TestWithParam<int> {};

TEST_P(NeighboursLostTest, AllAreDeclaredLostInTime) {
  const int num_dead = GetParam();
  const absl::Duration limit =
      4 * num_dead > 3 * kWorkers ? kLimitOfMost : kLimit;
  // The dead begin at each rank once, since ranks wrap around.
  for (int first = 0; first < kWorkers; ++first) {
    ClusterSimulation job(/*seed=*/static_cast<uint64_t>(first + 1),
                          {.num_workers = kWorkers});
    job.RestartDeparted();
    // Members that have just joined do not judge others yet.
    job.Advance(absl::Seconds(10));
    std::vector<WorkerInfo> all;
    for (int i = 0; i < kWorkers; ++i) all.push_back(job.agent(i)->info());
    for (int i = 0; i < num_dead; ++i) job.Kill((first + i) % kWorkers);
    job.Advance(limit);
    for (int observer = 0; observer < kWorkers; ++observer) {
      if (job.agent(observer) == nullptr) continue;
      for (int other = 0; other < kWorkers; ++other) {
        EXPECT_EQ(job.agent(observer)->IsLost(all[other]),
                  job.agent(other) == nullptr)
            << "w" << observer << " of w" << other << ", first dead: w"
            << first;
      }
    }
    EXPECT_EQ(job.failure(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(NumDead, NeighboursLostTest,
                         testing::Values(1, 2, 3, 5, 8, 9, 11),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hawser::rpc
