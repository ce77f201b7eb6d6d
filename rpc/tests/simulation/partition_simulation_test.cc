// F5 of docs/reliability.md: networks that fall apart, whole jobs in one
// thread.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "async/random_source.h"
#include "gtest/gtest.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"

namespace hawser::rpc {
namespace {

constexpr int kWorkers = 5;
// After the network is whole again.
constexpr absl::Duration kConvergence = absl::Seconds(10);
// All that a cut does has been done.
constexpr absl::Duration kVerdict = absl::Seconds(10);

// Two workers, or one and the store.
using Link = std::pair<int, int>;
constexpr int kStore = -1;

// All workers, of which those from `first_of_others` on are the others.
class Split {
 public:
  explicit Split(int first_of_others) : first_of_others_(first_of_others) {}

  bool IsOther(int worker) const { return worker >= first_of_others_; }

  // Cuts the two sides off from each other, and the others from the store if
  // that is so.
  void Apply(ClusterSimulation& job, bool others_reach_the_store) const {
    for (int a = 0; a < job.num_workers(); ++a) {
      for (int b = 0; b < a; ++b) {
        if (IsOther(a) != IsOther(b)) job.Partition(a, b);
      }
      if (IsOther(a) && !others_reach_the_store) job.PartitionStore(a);
    }
  }

 private:
  const int first_of_others_;
};

// Calls all the while, so that all watch each other.
void Last(ClusterSimulation& job, absl::Duration time) {
  for (absl::Duration t; t < time; t += absl::Milliseconds(500)) {
    job.CallAll();
    job.Advance(absl::Milliseconds(500));
  }
}

// What is wrong once the network is whole again; empty if nothing is.
std::string CheckWhole(ClusterSimulation& job) {
  job.ExpectConvergence(kConvergence);
  job.Advance(absl::Seconds(2));
  job.CheckHistory();
  return job.failure();
}

// Those that do not reach the store, few or many: the store is what a side must
// have to change the membership.
TEST(PartitionSimulationTest, F5SideWithoutTheStoreChangesNothing) {
  for (const int first_of_others : {1, 2, 3, 4}) {
    SCOPED_TRACE(first_of_others);
    ClusterSimulation job(/*seed=*/1, {.num_workers = kWorkers});
    job.RestartDeparted();
    Last(job, absl::Seconds(1));
    const Split split(first_of_others);
    split.Apply(job, /*others_reach_the_store=*/false);
    Last(job, kVerdict);
    for (int i = 0; i < kWorkers; ++i) {
      for (int other = 0; other < kWorkers; ++other) {
        // The side with the store has lost the others, in the eyes of all that
        // are on it; the others have been told of nothing.
        EXPECT_EQ(job.Sees(i, other), split.IsOther(i) || !split.IsOther(other))
            << i << " of " << other;
      }
      if (split.IsOther(i)) {
        EXPECT_EQ(job.CountReportsOf(i), 0) << i;
      }
      EXPECT_FALSE(job.DeclaredLost(i)) << i;
    }
    job.HealAll();
    job.Advance(absl::Seconds(2));
    for (int i = 0; i < kWorkers; ++i) {
      EXPECT_EQ(job.DeclaredLost(i), split.IsOther(i)) << i;
    }
    // Those who found the side with the store lost were not heard.
    for (int observer = 0; observer < first_of_others; ++observer) {
      for (int i = 0; i < kWorkers; ++i) {
        EXPECT_EQ(job.Sees(observer, i), !split.IsOther(i))
            << observer << " of " << i;
      }
    }
    EXPECT_EQ(CheckWhole(job), "");
  }
}

// Both sides reach the store, and report each other there: whoever is left is
// of one side, and all agree on who that is.
TEST(PartitionSimulationTest, F5OfTwoSidesWithTheStoreNoTwoStayThatAreApart) {
  for (const int first_of_others : {1, 2, 3, 4}) {
    SCOPED_TRACE(first_of_others);
    ClusterSimulation job(/*seed=*/2, {.num_workers = kWorkers});
    job.RestartDeparted();
    Last(job, absl::Seconds(1));
    const Split split(first_of_others);
    split.Apply(job, /*others_reach_the_store=*/true);
    Last(job, kVerdict);
    std::vector<int> left;
    for (int i = 0; i < kWorkers; ++i) {
      if (!job.DeclaredLost(i)) left.push_back(i);
    }
    ASSERT_FALSE(left.empty());
    for (const int i : left) {
      EXPECT_EQ(split.IsOther(i), split.IsOther(left[0]));
      for (int other = 0; other < kWorkers; ++other) {
        EXPECT_EQ(job.Sees(i, other), !job.DeclaredLost(other));
      }
    }
    EXPECT_EQ(CheckWhole(job), "");
  }
}

using PartitionSeedsTest = SeedsTest;

// Some links, of workers with each other and with the store, are cut one by
// one, and mended in another order, while all call each other.
TEST_P(PartitionSeedsTest, F5SwizzledCutsEndInOneJob) {
  RunSeeds([](uint64_t seed, bool verbose) {
    async::RandomSource random(seed);
    ClusterSimulation job(seed, {.num_workers = kWorkers, .verbose = verbose});
    job.RestartDeparted();
    Last(job, absl::Seconds(1));
    std::vector<Link> links;
    for (int a = 0; a < kWorkers; ++a) {
      if (random.Below(2) == 0) links.emplace_back(a, kStore);
      for (int b = 0; b < a; ++b) {
        if (random.Below(2) == 0) links.emplace_back(a, b);
      }
    }
    const auto swizzle = [&](auto change_store, auto change_link) {
      std::shuffle(links.begin(), links.end(), random);
      for (const auto& [a, b] : links) {
        if (b == kStore) {
          (job.*change_store)(a);
        } else {
          (job.*change_link)(a, b);
        }
        job.CallAll();
        job.Advance(absl::Milliseconds(random.Below(1000)));
      }
    };
    swizzle(&ClusterSimulation::PartitionStore, &ClusterSimulation::Partition);
    job.Advance(absl::Milliseconds(random.Below(5000)));
    swizzle(&ClusterSimulation::HealStore, &ClusterSimulation::Heal);
    return CheckWhole(job);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, PartitionSeedsTest,
                         testing::ValuesIn(SeedsOfCases()));

}  // namespace
}  // namespace hawser::rpc
