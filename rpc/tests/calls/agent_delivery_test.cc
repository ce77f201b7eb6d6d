// How often a message is sent, and run, where some are lost or arrive twice.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "rpc/inproc/network.h"
#include "rpc/testing/echo_service.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Function<void()> kStep{"test.Step"};

// Two workers driven step by step, over a network with faults.
class AgentDeliveryTest : public testing::Test {
 protected:
  void Start(uint64_t seed) {
    network_ = std::make_unique<InprocNetwork>(InprocNetworkOptions{
        .seed = seed, .executor = &executor_, .clock = &clock_});
    for (int rank = 0; rank < 2; ++rank) {
      AgentOptions options;
      options.name = "w" + std::to_string(rank);
      options.rank = rank;
      options.store = &store_;
      options.transport = network_->NewTransport();
      options.registry = &registry_;
      options.clock = &clock_;
      options.executor = &executor_;
      auto service = std::make_unique<EchoService>(&events_[rank]);
      services_.push_back(service.get());
      options.services.push_back(std::move(service));
      absl::StatusOr<std::unique_ptr<Agent>> agent =
          Agent::Start(std::move(options));
      ASSERT_THAT(agent, IsOk());
      agents_.push_back(*std::move(agent));
    }
  }

  // Lets time pass until the future is ready.
  template <class T>
  async::Result<T> Run(async::Future<T> future) {
    while (!future.ready()) {
      executor_.RunAll();
      if (future.ready()) break;
      EXPECT_TRUE(clock_.AdvanceToNextTimer());
    }
    return future.result();
  }

  async::Future<Message<EchoReply>> Call(const EchoService::Method& method,
                                         const MethodCallOptions& options) {
    return agents_[0]->host().CallMethod("w1", method, MakeEchoRequest("x"), {},
                                         options);
  }

  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore store_;
  FunctionRegistry registry_;
  std::vector<std::vector<std::string>> events_{2};
  std::unique_ptr<InprocNetwork> network_;
  std::vector<EchoService*> services_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

TEST_F(AgentDeliveryTest, ReadsAreTriedAgainUntilTheyArrive) {
  Start(1);
  network_->SetMethodFaults(EchoService::kReadPath,
                            {.drop_request = 0.5, .drop_reply = 0.5});
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(
        Run(Call(EchoService::kRead, {.timeout = absl::Minutes(30),
                                      .attempt_timeout = absl::Seconds(1)})),
        IsOk());
  }
  EXPECT_GT(services_[1]->num_calls, 60);
}

TEST_F(AgentDeliveryTest, AtMostOnceIsNotTriedAgain) {
  Start(1);
  network_->SetMethodFaults(EchoService::kOncePath, {.drop_reply = 1});
  const absl::Status status =
      Run(Call(EchoService::kOnce, {.timeout = absl::Seconds(60),
                                    .attempt_timeout = absl::Seconds(1)}))
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(GetErrorDetail(status)->maybe_applied);
  EXPECT_EQ(services_[1]->num_calls, 1);
}

TEST_F(AgentDeliveryTest, AtMostOnceIsNotRunTwiceForACopy) {
  Start(3);
  network_->SetMethodFaults(
      EchoService::kOncePath,
      {.duplicate_request = 1, .max_delay = absl::Milliseconds(50)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Run(Call(EchoService::kOnce, {})), IsOk());
  }
  // The second copies of the last calls may still be under way.
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  EXPECT_EQ(services_[1]->num_calls, 100);
}

TEST_F(AgentDeliveryTest, UserCallsAreNotRunTwiceForACopy) {
  int steps = 0;
  ASSERT_THAT(registry_.Register(kStep, [&] { ++steps; }), IsOk());
  Start(5);
  network_->SetFaults(
      {.duplicate_request = 1, .max_delay = absl::Milliseconds(50)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Run(agents_[0]->Async("w1", kStep)), IsOk());
  }
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  EXPECT_EQ(steps, 100);
}

// It would seem that the call had not run.
TEST_F(AgentDeliveryTest, CopyOfACallThatRunsIsNotRefusedByOneThatLeaves) {
  constexpr Function<void()> kHold{"test.Hold"};
  async::Promise<void> held;
  const async::Future<void> hold = held.future();
  bool entered = false;
  ASSERT_THAT(registry_.Register(kHold,
                                 [&] {
                                   entered = true;
                                   return hold;
                                 }),
              IsOk());
  Start(1);
  network_->SetMethodFaults(
      "/hawser.v1.WorkerService/Call",
      {.duplicate_request = 1, .max_delay = absl::Seconds(1)});
  async::Future<void> call =
      agents_[0]->Async("w1", {.timeout = kNoTimeout}, kHold);
  while (!entered) {
    clock_.AdvanceBy(absl::Milliseconds(10));
    executor_.RunAll();
  }
  async::Future<void> left = agents_[1]->Leave();
  for (int i = 0; i < 100; ++i) {
    executor_.RunAll();
    clock_.AdvanceBy(absl::Milliseconds(10));
  }
  executor_.RunAll();
  EXPECT_FALSE(call.ready());
  held.Set(absl::OkStatus());
  EXPECT_THAT(Run(std::move(call)), IsOk());
  EXPECT_THAT(Run(std::move(left)), IsOk());
}

TEST_F(AgentDeliveryTest, SilentWorkerIsLostWithinThreeSecondsAndFenced) {
  ASSERT_THAT(registry_.Register(kStep, [] {}), IsOk());
  Start(1);
  ASSERT_THAT(Run(agents_[0]->Async("w1", kStep)), IsOk());
  ASSERT_THAT(Run(agents_[1]->Async("w0", kStep)), IsOk());
  const async::MonotonicTime start = clock_.Now();
  network_->Partition(agents_[0]->info().address, agents_[1]->info().address,
                      true);
  const absl::Status status =
      Run(agents_[0]->Async("w1", {.timeout = kNoTimeout}, kStep));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_LE(async::TimeBetween(start, clock_.Now()), absl::Seconds(3));
  executor_.RunAll();
  EXPECT_THAT(events_[0], ElementsAre("start", "lost w1"));
  // Later calls fail at once.
  async::Future<void> later = agents_[0]->Async("w1", kStep);
  ASSERT_TRUE(later.ready());
  EXPECT_THAT(later.result(), StatusIs(absl::StatusCode::kUnavailable));
  // It is heard again: too late.
  network_->Partition(agents_[0]->info().address, agents_[1]->info().address,
                      false);
  EXPECT_THAT(Run(agents_[1]->Async("w0", kStep)).code(),
              testing::AnyOf(absl::StatusCode::kFailedPrecondition,
                             absl::StatusCode::kUnavailable));
}

TEST_F(AgentDeliveryTest, BrokenConnectionFailsCallsAtOnceAndIsRestored) {
  async::Promise<void> never;
  ASSERT_THAT(registry_.Register(kStep, [&] { return never.future(); }),
              IsOk());
  Start(1);
  async::Future<void> waiting =
      agents_[0]->Async("w1", {.timeout = kNoTimeout}, kStep);
  executor_.RunAll();
  ASSERT_FALSE(waiting.ready());
  network_->Break(agents_[0]->info().address, agents_[1]->info().address);
  executor_.RunAll();
  ASSERT_TRUE(waiting.ready());
  EXPECT_THAT(waiting.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(GetErrorDetail(waiting.result())->maybe_applied);
  EXPECT_THAT(Run(Call(EchoService::kRead, {})), IsOk());
}

TEST_F(AgentDeliveryTest, RunsRepeatExactly) {
  const auto run = [](uint64_t seed) {
    async::ManualExecutor executor;
    async::SimulatedClock clock;
    InprocNetwork network(
        {.seed = seed, .executor = &executor, .clock = &clock});
    store::HashStore store;
    FunctionRegistry registry;
    std::vector<int> order;
    constexpr Function<void(int)> kNote{"test.Note"};
    EXPECT_THAT(registry.Register(kNote, [&](int n) { order.push_back(n); }),
                IsOk());
    std::vector<std::unique_ptr<Agent>> agents;
    for (int rank = 0; rank < 2; ++rank) {
      AgentOptions options;
      options.name = "w" + std::to_string(rank);
      options.rank = rank;
      options.store = &store;
      options.transport = network.NewTransport();
      options.registry = &registry;
      options.clock = &clock;
      options.executor = &executor;
      agents.push_back(*Agent::Start(std::move(options)));
    }
    network.SetFaults({.drop_request = 0.2,
                       .min_delay = absl::Milliseconds(1),
                       .max_delay = absl::Milliseconds(20)});
    std::vector<async::Future<void>> futures;
    for (int i = 0; i < 100; ++i) {
      futures.push_back(agents[0]->Async(
          "w1", {.timeout = absl::Milliseconds(500)}, kNote, i));
    }
    for (int i = 0; i < 100; ++i) {
      executor.RunAll();
      clock.AdvanceBy(absl::Milliseconds(10));
    }
    executor.RunAll();
    return order;
  };
  const std::vector<int> first = run(42);
  EXPECT_LT(first.size(), 100u);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(first, run(42));
  EXPECT_NE(first, run(43));
}

}  // namespace
}  // namespace hawser::rpc
