// Workers of a job with a world size, which leave together while they call each
// other, under faults: whole jobs in one thread, one per seed.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"

namespace hawser::rpc {
namespace {

// Runs on one worker after another, so many times more; nobody waits for the
// next one.
constexpr Function<void(int64_t, int64_t)> kWander{"test.Wander"};

class GroupSimulation {
 public:
  GroupSimulation(uint64_t seed, bool verbose)
      : job_(seed, {.num_workers = 2 + static_cast<int>(seed % 4),
                    .group = true,
                    .verbose = verbose}) {
    EXPECT_THAT(job_.registry().Register(kWander,
                                         [this](int64_t call, int64_t further) {
                                           job_.Executed(call);
                                           if (further > 0) {
                                             Wander(CurrentCall::Get()->agent(),
                                                    further - 1);
                                           }
                                         }),
                async::IsOk());
  }

  // 1. Calls, which make calls.
  // 2. All leave, one sooner, one later; calls go on meanwhile.
  // 3. In some seeds a worker dies, stops, or loses the store for a while.
  std::string Run() {
    job_.StartTogether();
    async::RandomSource& random = job_.random();
    const bool faults = random.Below(2) == 0;
    if (random.Below(2) == 0) DisturbMessages();
    const int victim = static_cast<int>(random.Below(job_.num_workers()));
    bool may_fail = false;
    for (int step = 0; step < 20; ++step) {
      for (int i = 0; i < job_.num_workers(); ++i) {
        Agent* const agent = job_.agent(i);
        if (agent == nullptr || job_.leaving(i)) continue;
        Wander(*agent, static_cast<int64_t>(random.Below(5)));
        if (random.Below(6) == 0) job_.Leave(i);
      }
      if (faults && random.Below(12) == 0) may_fail |= Fault(victim);
      job_.Advance(absl::Milliseconds(random.Below(300)));
    }
    for (int i = 0; i < job_.num_workers(); ++i) job_.Leave(i);
    job_.HealAll();
    job_.AwaitLeaving();
    job_.Advance(absl::Seconds(1));
    job_.CheckHistory();
    if (!may_fail && num_failed_ > 0) {
      job_.Fail(
          absl::StrCat(num_failed_, " calls failed though nobody was gone"));
    }
    return job_.failure();
  }

 private:
  void DisturbMessages() {
    async::RandomSource& random = job_.random();
    // Late, in another order, and twice; what is lost may end a call.
    job_.network().SetFaults(
        {.duplicate_request = 0.3 * random.Uniform(),
         .duplicate_reply = 0.3 * random.Uniform(),
         .max_delay = absl::Milliseconds(random.Below(100))});
  }

  // Whether somebody is gone for good after it.
  bool Fault(int victim) {
    if (job_.agent(victim) == nullptr) return false;
    switch (job_.random().Below(3)) {
      case 0:
        job_.Note(absl::StrCat("kill w", victim));
        job_.Kill(victim);
        return true;
      case 1:
        job_.Stop(victim);
        return true;
      default:
        // Twice in a row would let its lease lapse.
        if (std::exchange(store_was_cut_, true)) return false;
        job_.Note(absl::StrCat("cut the store of w", victim));
        job_.PartitionStore(victim);
        job_.Advance(absl::Milliseconds(job_.random().Below(2000)));
        job_.HealStore(victim);
        return false;
    }
  }

  void Wander(Agent& from, int64_t further) {
    const int to = static_cast<int>(job_.random().Below(job_.num_workers()));
    const int64_t call = job_.calls().Begin();
    const async::Future<void> done =
        from.Async(absl::StrCat("w", to), {.timeout = absl::Seconds(20)},
                   kWander, call, further);
    job_.Track(call, done);
    done.OnReady(
        [this](const absl::Status& status) { num_failed_ += !status.ok(); });
  }

  bool store_was_cut_ = false;
  int num_failed_ = 0;
  ClusterSimulation job_;
};

using GroupSeedsTest = SeedsTest;

TEST_P(GroupSeedsTest, WorkersLeaveTogetherUnderAllSeeds) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return GroupSimulation(seed, verbose).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupSeedsTest,
                         testing::ValuesIn(SeedsOfCases()));

}  // namespace
}  // namespace hawser::rpc
