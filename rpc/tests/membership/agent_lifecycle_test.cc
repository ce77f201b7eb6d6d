#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"
#include "store/barrier.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Function<int64_t(int64_t, int64_t)> kAdd{"test.Add"};
constexpr Function<std::string()> kWhoCalls{"test.WhoCalls"};
constexpr Function<void()> kHold{"test.Hold"};
constexpr Function<void()> kCompute{"test.Compute"};

// Start, identity, loss and shutdown; calls are in agent_test.cc.
class AgentLifecycleTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentLifecycleTest() : job_(MakeTransportFactory(GetParam())) {
    FunctionRegistry& registry = job_.registry();
    EXPECT_THAT(
        registry.Register(kAdd, [](int64_t a, int64_t b) { return a + b; }),
        IsOk());
    EXPECT_THAT(
        registry.Register(kWhoCalls,
                          [] { return CurrentCall::Get()->caller().name; }),
        IsOk());
    // Does not return while the test runs.
    EXPECT_THAT(registry.Register(kHold,
                                  [this] {
                                    async::Future<void> future = held_.future();
                                    entered_.Notify();
                                    return future;
                                  }),
                IsOk());
  }

  async::Promise<void> held_;
  absl::Notification entered_;
  TestJob job_;
};

TEST_P(AgentLifecycleTest, KnowsItsWorkers) {
  job_.StartAll(3);
  const std::vector<WorkerInfo> workers = job_.agent(2).workers();
  ASSERT_EQ(workers.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(workers[i], job_.agent(i).info());
  EXPECT_THAT(job_.agent(0).FindWorker("w2"),
              IsOkAndHolds(job_.agent(2).info()));
}

TEST_P(AgentLifecycleTest, StartsWithTheSuccessorOfOneThatDiedWhileStarting) {
  const WorkerInfo dead = {.name = "w1",
                           .id = WorkerId(1),
                           .incarnation = Incarnation(7),
                           .address = "127.0.0.1:1"};
  WorkerDirectory directory(&job_.store(), AgentOptions().job);
  ASSERT_THAT(directory.JoinGroup(2), IsOk());
  ASSERT_THAT(directory.Register(dead, {}), IsOk());
  auto first = std::async(std::launch::async,
                          [&] { return Agent::Start(job_.Options(0, 2)); });
  // It has published the dead worker as one of the group.
  ASSERT_THAT(job_.store().Get(
                  absl::StrCat("rpc/", AgentOptions().job, "/start/roster")),
              IsOk());
  auto second = Agent::Start(job_.Options(1, 2));
  ASSERT_THAT(second, IsOk());
  auto started = first.get();
  ASSERT_THAT(started, IsOk());
  EXPECT_THAT((*started)->Sync("w1", kAdd, 1, 2), IsOkAndHolds(3));
}

TEST_P(AgentLifecycleTest, WrongIncarnationIsRefused) {
  job_.StartAll(2);
  WorkerInfo old = job_.agent(1).info();
  old.incarnation = Incarnation{ToNumber(old.incarnation) ^ 1};
  EXPECT_THAT(job_.agent(0).Sync(old, kAdd, 1, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(ToString(old.incarnation))));
}

TEST_P(AgentLifecycleTest, PeerThatStopsFailsWaitingCallsAtOnce) {
  job_.StartAll(2);
  async::Future<void> future =
      job_.agent(0).Async("w1", {.timeout = kNoTimeout}, kHold);
  entered_.WaitForNotification();
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  const absl::Status status = future.Wait();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_EQ(GetErrorDetail(status)->worker, "w1");
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
}

TEST_P(AgentLifecycleTest, ShutdownCancelsOwnCalls) {
  job_.StartAll(2);
  async::Future<void> future = job_.agent(0).Async("w1", kHold);
  entered_.WaitForNotification();
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  ASSERT_TRUE(future.ready());
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(job_.agent(0).num_client_calls(), 0);
}

TEST_P(AgentLifecycleTest, GracefulShutdownWaitsForOwnCalls) {
  constexpr Function<void()> kSlow{"test.Slow"};
  absl::Notification proceed;
  std::atomic<bool> ended{false};
  ASSERT_THAT(job_.registry().Register(kSlow,
                                       [&] {
                                         proceed.WaitForNotification();
                                         ended = true;
                                       }),
              IsOk());
  job_.StartAll(2);
  async::Future<void> future = job_.agent(0).Async("w1", kSlow);
  std::thread release([&] { proceed.Notify(); });
  EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
  release.join();
  EXPECT_TRUE(ended);
  EXPECT_THAT(future.Wait(), IsOk());
}

TEST_P(AgentLifecycleTest, ShutdownIsIdempotent) {
  job_.StartAll(2);
  EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(job_.agent(0).Shutdown(), IsOk());
  EXPECT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
}

TEST_P(AgentLifecycleTest, ShutdownInsideACallIsRefused) {
  constexpr Function<void()> kShutdown{"test.Shutdown"};
  ASSERT_THAT(
      job_.registry().Register(
          kShutdown, [] { return CurrentCall::Get()->agent().Shutdown(); }),
      IsOk());
  job_.StartAll(1);
  EXPECT_THAT(job_.agent(0).Sync("w0", kShutdown),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(AgentLifecycleTest, SameStoreServesTheNextJob) {
  for (int i = 0; i < 3; ++i) {
    job_.StartAll(2);
    EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, i, 1), IsOkAndHolds(i + 1));
    EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
    job_.StopAll();
  }
}

TEST_P(AgentLifecycleTest, TakenNameIsReportedWithItsHolder) {
  job_.StartOne(0);
  AgentOptions options = job_.Options(1, std::nullopt);
  options.name = "w0";
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(ToString(job_.agent(0).info().incarnation))));
  options = job_.Options(0, std::nullopt);
  options.name = "other";
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("rank 0")));
  // What failed left nothing behind.
  job_.StartOne(1, [](int, AgentOptions& o) { o.name = "other"; });
}

TEST_P(AgentLifecycleTest, MissingWorkersAreNamed) {
  AgentOptions options = job_.Options(1, 4);
  options.start_timeout = absl::Milliseconds(300);
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("start in time: 0, 2, 3")));
}

TEST_P(AgentLifecycleTest, WorldSizesMustAgree) {
  job_.StartOne(0);
  EXPECT_THAT(
      Agent::Start(job_.Options(1, 2)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("world size")));
}

TEST_P(AgentLifecycleTest, WorkersWithoutWorldSizeFindEachOtherByNameAndRank) {
  job_.StartOne(0);
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2),
              StatusIs(absl::StatusCode::kNotFound));
  job_.StartOne(1);
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2), IsOkAndHolds(3));
  EXPECT_THAT(job_.agent(1).Sync(WorkerId(0), kWhoCalls), IsOkAndHolds("w1"));
}

TEST_P(AgentLifecycleTest, RestartedWorkerIsFoundAnew) {
  job_.StartOne(0);
  job_.StartOne(1);
  const WorkerInfo old = job_.agent(1).info();
  ASSERT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2), IsOkAndHolds(3));
  ASSERT_THAT(job_.agent(1).Shutdown(), IsOk());
  AgentOptions options = job_.Options(1, std::nullopt);
  absl::StatusOr<std::unique_ptr<Agent>> again =
      Agent::Start(std::move(options));
  ASSERT_THAT(again, IsOk());
  // Found lost, or replaced, within the limits of the liveness monitor.
  while (!job_.agent(0).Sync("w1", kAdd, 1, 2).ok()) {
  }
  EXPECT_THAT(job_.agent(0).Sync(old, kAdd, 1, 2).status().code(),
              testing::AnyOf(absl::StatusCode::kFailedPrecondition,
                             absl::StatusCode::kUnavailable));
}

TEST_P(AgentLifecycleTest, BadOptionsAreNamed) {
  AgentOptions options = job_.Options(0, 1);
  options.store = nullptr;
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("store")));
  options = job_.Options(5, 2);
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank")));
  options = job_.Options(0, 1);
  options.name = "with space";
  EXPECT_THAT(
      Agent::Start(std::move(options)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("with space")));
}

// A worker of which one call of a function takes all threads.
class BusyWorkerTest : public AgentLifecycleTest {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kCompute,
                                         [this] {
                                           entered_.Notify();
                                           // As a computation does, it does not
                                           // say that it waits.
                                           computed_.WaitForNotification();
                                         }),
                IsOk());
    // Asks nothing of w1 but to compute.
    job_.StartOne(0, [](int, AgentOptions& options) {
      options.liveness = {.heartbeat_interval = absl::Minutes(10),
                          .silent_limit = absl::Minutes(30)};
    });
    job_.StartOne(1, [](int, AgentOptions& options) {
      options.num_threads = 1;
      options.shutdown_timeout = absl::Milliseconds(300);
      options.liveness = {.heartbeat_interval = absl::Milliseconds(20),
                          .silent_limit = absl::Minutes(30)};
    });
    computing_ = job_.agent(0).Async("w1", kCompute);
    entered_.WaitForNotification();
  }
  // The computation ends with the job, before what it waits for.
  void TearDown() override {
    computed_.Notify();
    job_.StopAll();
  }

  absl::Notification computed_;
  async::Future<void> computing_;
};

TEST_P(BusyWorkerTest, RenewsItsLease) {
  MembershipLog log(&job_.store(), job_.agent(1).job());
  const Incarnation worker = job_.agent(1).info().incarnation;
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<std::string> count = log.ReadLease(worker);
    ASSERT_THAT(count, IsOk());
    while (log.ReadLease(worker) == count) std::this_thread::yield();
  }
  EXPECT_FALSE(computing_.ready());
}

TEST_P(BusyWorkerTest, LeavesInTime) {
  EXPECT_THAT(job_.agent(1).Leave().Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("1 inbound calls")));
  EXPECT_THAT(
      WorkerDirectory(&job_.store(), job_.agent(1).job()).FindByName("w1"),
      IsOkAndHolds(std::nullopt));
}

INSTANTIATE_TEST_SUITE_P(Transports, BusyWorkerTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

INSTANTIATE_TEST_SUITE_P(Transports, AgentLifecycleTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
