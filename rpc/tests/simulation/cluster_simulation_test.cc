// Calls and membership under faults that a seed decides, checked against what
// docs/rpc/guarantees.md promises. One seed again:
// rpc/testing/simulation_seeds.h.

#include "rpc/testing/cluster_simulation.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/simulation_seeds.h"
#include "rpc/testing/tracked_calls.h"

namespace hawser::rpc {
namespace {

constexpr Function<void(int64_t)> kTouch{"test.Touch"};
// Answers after so many milliseconds.
constexpr Function<void(int64_t, int64_t)> kWork{"test.Work"};
// Calls kTouch, with the second number, on the worker named.
constexpr Function<void(int64_t, int64_t, std::string)> kRelay{"test.Relay"};
constexpr int kSteps = 30;

class CallsSimulation {
 public:
  CallsSimulation(uint64_t seed, bool verbose)
      : job_(seed, {.verbose = verbose}) {
    FunctionRegistry& registry = job_.registry();
    EXPECT_THAT(registry.Register(
                    kTouch, [this](int64_t call) { job_.Executed(call); }),
                async::IsOk());
    EXPECT_THAT(
        registry.Register(kWork,
                          [this](int64_t call, int64_t milliseconds) {
                            job_.Executed(call);
                            return After(absl::Milliseconds(milliseconds));
                          }),
        async::IsOk());
    EXPECT_THAT(registry.Register(
                    kRelay,
                    [this](int64_t call, int64_t inner, const std::string& to) {
                      job_.Executed(call);
                      return Relay(inner, to);
                    }),
                async::IsOk());
  }

  // 1. Random faults.
  // 2. All is whole again: everybody is back, sees the same and is reached.
  std::string Run() {
    job_.RestartDeparted();
    for (int step = 0; step < kSteps; ++step) {
      job_.RandomFault();
      for (int i = 0; i < 6; ++i) RandomCall();
      job_.Advance(absl::Milliseconds(job_.random().Below(1500)));
    }
    job_.ExpectConvergence();
    job_.Advance(absl::Seconds(10));
    job_.CheckHistory();
    return job_.failure();
  }

 private:
  async::Future<void> After(absl::Duration time) {
    async::Promise<void> promise;
    async::Future<void> future = promise.future();
    job_.clock().CallAfter(time, [promise = std::move(promise)]() mutable {
      promise.Set(absl::OkStatus());
    });
    return future;
  }

  // What the inner call comes to is seen there.
  async::Future<void> Relay(int64_t inner, const std::string& to) {
    async::Future<void> touched =
        CurrentCall::Get()->agent().Async(to, kTouch, inner);
    job_.Track(inner, touched);
    return touched.Then([](const absl::Status&) { return absl::OkStatus(); });
  }

  void RandomCall() {
    async::RandomSource& random = job_.random();
    Agent* const from = job_.agent(RandomWorker());
    const int to = RandomWorker();
    const bool pin = random.Below(2) == 0;
    if (from == nullptr) return;
    Destination destination(absl::StrCat("w", to));
    Incarnation pinned{};
    if (pin && job_.agent(to) != nullptr) {
      pinned = job_.agent(to)->info().incarnation;
      destination = Destination(job_.agent(to)->info());
    }
    const int64_t number = job_.calls().Begin(pinned);
    job_.Note(absl::StrCat("call ", number, " from ", from->info().name,
                           " to w", to));
    const CallOptions options{.timeout =
                                  absl::Milliseconds(100 + random.Below(4000))};
    switch (random.Below(4)) {
      case 0:
        job_.Track(number,
                   from->Async(destination, options, kWork, number,
                               static_cast<int64_t>(random.Below(3000))));
        break;
      case 1:
        job_.Track(number, from->Async(destination, options, kRelay, number,
                                       job_.calls().BeginIfRun(),
                                       absl::StrCat("w", RandomWorker())));
        break;
      default:
        job_.Track(number, from->Async(destination, options, kTouch, number));
        break;
    }
  }

  int RandomWorker() {
    return static_cast<int>(job_.random().Below(job_.num_workers()));
  }

  ClusterSimulation job_;
};

using ClusterSeedsTest = SeedsTest;

TEST_P(ClusterSeedsTest, PromisesOfCallsAndMembershipHoldUnderAllSeeds) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return CallsSimulation(seed, verbose).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterSeedsTest,
                         testing::ValuesIn(SeedsOfCases()));

}  // namespace
}  // namespace hawser::rpc
