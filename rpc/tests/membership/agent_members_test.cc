#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Function<int64_t(int64_t, int64_t)> kAdd{"test.Add"};
constexpr Function<void()> kHold{"test.Hold"};

// Events of one watch, as text.
class Recorder {
 public:
  MemberCallback callback() {
    return [this](const MemberEvent& event) {
      const char* kinds[] = {"joined ", "left ", "lost "};
      async::MutexLock lock(&mutex_);
      events_.push_back(kinds[static_cast<int>(event.kind)] +
                        event.worker.name);
      changed_.NotifyAll();
    };
  }
  // The events once there are `count`.
  std::vector<std::string> Await(size_t count) {
    async::MutexLock lock(&mutex_);
    while (events_.size() < count) changed_.Wait(&mutex_);
    return events_;
  }

 private:
  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
};

// Workers that come, go, die and come back.
class AgentMembersTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentMembersTest() : job_(MakeTransportFactory(GetParam())) {
    EXPECT_THAT(job_.registry().Register(
                    kAdd, [](int64_t a, int64_t b) { return a + b; }),
                IsOk());
    EXPECT_THAT(job_.registry().Register(kHold,
                                         [this] {
                                           async::Future<void> future =
                                               held_.future();
                                           entered_.Notify();
                                           return future;
                                         }),
                IsOk());
  }

  static void Quick(int, AgentOptions& options) {
    options.liveness.heartbeat_interval = absl::Milliseconds(100);
  }

  async::Promise<void> held_;
  absl::Notification entered_;
  Recorder recorder_;
  TestJob job_;
};

TEST_P(AgentMembersTest, WatchTellsOfMembersAndThenOfChangesInOrder) {
  job_.StartOne(0, Quick);
  job_.StartOne(1, Quick);
  job_.agent(0).WatchMembers(recorder_.callback());
  EXPECT_THAT(recorder_.Await(2),
              testing::UnorderedElementsAre("joined w0", "joined w1"));
  job_.StartOne(2, Quick);
  recorder_.Await(3);
  ASSERT_THAT(job_.agent(1).Shutdown(), IsOk());
  recorder_.Await(4);
  ASSERT_THAT(job_.agent(2).Shutdown(/*graceful=*/false), IsOk());
  const std::vector<std::string> events = recorder_.Await(5);
  EXPECT_EQ(events[2], "joined w2");
  EXPECT_EQ(events[3], "left w1");
  EXPECT_EQ(events[4], "lost w2");
}

TEST_P(AgentMembersTest, NewcomersWatchDoesNotReportThoseThatWentBefore) {
  job_.StartOne(0, Quick);
  job_.StartOne(1, Quick);
  job_.StartOne(2, Quick);
  ASSERT_THAT(job_.agent(1).Shutdown(), IsOk());
  ASSERT_THAT(job_.agent(2).Shutdown(/*graceful=*/false), IsOk());
  job_.StartOne(3, Quick);
  job_.agent(3).WatchMembers(recorder_.callback());
  EXPECT_THAT(recorder_.Await(2),
              testing::UnorderedElementsAre("joined w0", "joined w3"));
  ASSERT_THAT(job_.agent(0).Shutdown(), IsOk());
  EXPECT_EQ(recorder_.Await(3)[2], "left w0");
}

TEST_P(AgentMembersTest, LossOfAWorkerEndsTheBarrierOfThoseThatLeave) {
  job_.StartAll(3, Quick);
  std::vector<async::Future<void>> left;
  for (int rank = 0; rank < 2; ++rank) {
    left.push_back(job_.agent(rank).Leave());
    // It has come, and waits for the others.
    const std::string key =
        absl::StrCat("rpc/", job_.Options(rank, 3).job, "/leaving/",
                     ToString(job_.agent(0).info().incarnation), "/", rank, "/",
                     ToString(job_.agent(rank).info().incarnation));
    ASSERT_THAT(job_.store().Wait({&key, 1}, absl::Seconds(60)), IsOk());
  }
  ASSERT_THAT(job_.agent(2).Shutdown(/*graceful=*/false), IsOk());
  for (const async::Future<void>& future : left) {
    EXPECT_THAT(future.Wait(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w2'")));
  }
}

TEST_P(AgentMembersTest, RemovedWatchHearsNothing) {
  job_.StartOne(0, Quick);
  std::atomic<int> calls{0};
  const MemberWatch watch =
      job_.agent(0).WatchMembers([&](const MemberEvent&) { ++calls; });
  job_.agent(0).UnwatchMembers(watch);
  const int before = calls;
  job_.agent(0).WatchMembers(recorder_.callback());
  job_.StartOne(1, Quick);
  recorder_.Await(2);
  EXPECT_EQ(calls, before);
}

TEST_P(AgentMembersTest, RolesAreSeenByOthers) {
  job_.StartOne(0, Quick);
  job_.StartOne(1, [](int rank, AgentOptions& options) {
    Quick(rank, options);
    options.roles = {"ps", "backup"};
  });
  const absl::StatusOr<WorkerInfo> found = job_.agent(0).FindWorker("w1");
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(found->roles, ElementsAre("ps", "backup"));
}

TEST_P(AgentMembersTest, LeavingWorkerFinishesWhatItServes) {
  job_.StartOne(0, Quick);
  job_.StartOne(1, Quick);
  job_.agent(0).WatchMembers(recorder_.callback());
  async::Future<void> future =
      job_.agent(0).Async("w1", {.timeout = kNoTimeout}, kHold);
  entered_.WaitForNotification();
  std::future<absl::Status> shutdown =
      std::async(std::launch::async, [&] { return job_.agent(1).Shutdown(); });
  EXPECT_THAT(recorder_.Await(3)[2], "left w1");
  // What comes now is refused, surely not applied.
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("left")));
  held_.Set(absl::OkStatus());
  EXPECT_THAT(future.Wait(), IsOk());
  EXPECT_THAT(shutdown.get(), IsOk());
}

// The event of it reaches others only with their next look at the store.
TEST_P(AgentMembersTest, CallsToALeavingWorkerRanOrSayThatTheyDidNot) {
  std::atomic<int64_t> num_run{0};
  constexpr Function<void()> kCount{"test.Count"};
  ASSERT_THAT(job_.registry().Register(kCount,
                                       [&] {
                                         ++num_run;
                                         return absl::OkStatus();
                                       }),
              IsOk());
  const auto slow = [](int, AgentOptions& options) {
    options.liveness.heartbeat_interval = absl::Seconds(5);
  };
  job_.StartOne(0, slow);
  job_.StartOne(1, slow);
  const WorkerInfo leaver = job_.agent(1).info();
  std::atomic<int64_t> num_ok{0};
  std::atomic<bool> refused{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (true) {
        const absl::Status status = job_.agent(0).Sync(leaver, kCount);
        if (status.ok()) {
          ++num_ok;
          continue;
        }
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
        const auto detail = GetErrorDetail(status);
        EXPECT_TRUE(detail.has_value() && !detail->maybe_applied) << status;
        if (refused) return;
      }
    });
  }
  while (num_ok < 100) std::this_thread::yield();
  EXPECT_THAT(job_.agent(1).Shutdown(), IsOk());
  refused = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_run, num_ok);
}

TEST_P(AgentMembersTest, CallsOfAWorkerThatIsDeclaredLostSayThatItMustRestart) {
  job_.StartOne(0, Quick);
  job_.StartOne(1, Quick);
  async::Future<void> under_way =
      job_.agent(0).Async("w1", {.timeout = kNoTimeout}, kHold);
  entered_.WaitForNotification();
  MembershipLog log(&job_.store(), AgentOptions().job);
  ASSERT_THAT(
      log.Append(LostEvent(job_.agent(0).info().incarnation,
                           job_.agent(1).info().incarnation, "was silent")),
      IsOk());
  const auto must_restart = StatusIs(absl::StatusCode::kFailedPrecondition,
                                     testing::HasSubstr("must restart"));
  EXPECT_THAT(under_way.Wait(), must_restart);
  EXPECT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2), must_restart);
  held_.Set(absl::OkStatus());
}

TEST_P(AgentMembersTest, StaticGroupReachesRestartedWorkerByName) {
  job_.StartAll(2, Quick);
  const WorkerInfo old = job_.agent(1).info();
  ASSERT_THAT(job_.agent(0).Sync("w1", kAdd, 1, 2), IsOkAndHolds(3));
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  AgentOptions options = job_.Options(1, 2);
  Quick(1, options);
  absl::StatusOr<std::unique_ptr<Agent>> again =
      Agent::Start(std::move(options));
  ASSERT_THAT(again, IsOk());
  job_.owned(1) = *std::move(again);
  EXPECT_NE(job_.agent(1).info().incarnation, old.incarnation);
  EXPECT_THAT(job_.agent(1).Sync("w0", kAdd, 1, 2), IsOkAndHolds(3));
  job_.agent(0).WatchMembers(recorder_.callback());
  recorder_.Await(2);
  while (true) {
    absl::StatusOr<int64_t> sum = job_.agent(0).Sync("w1", kAdd, 3, 4);
    if (sum.ok()) break;
    ASSERT_THAT(sum, StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(job_.agent(0).Sync(WorkerId(1), kAdd, 3, 4), IsOkAndHolds(7));
  EXPECT_THAT(job_.agent(0).Sync(old, kAdd, 1, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(ToString(job_.agent(1).info().incarnation))));
  EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
}

TEST_P(AgentMembersTest, OfManyThatWantOneNameOneGetsIt) {
  constexpr int kWorkers = 8;
  std::vector<std::future<absl::StatusOr<std::unique_ptr<Agent>>>> starts;
  for (int i = 0; i < kWorkers; ++i) {
    AgentOptions options = job_.Options(0, std::nullopt);
    Quick(0, options);
    starts.push_back(std::async(std::launch::async,
                                [options = std::move(options)]() mutable {
                                  return Agent::Start(std::move(options));
                                }));
  }
  std::unique_ptr<Agent> winner;
  std::vector<absl::Status> refused;
  for (auto& start : starts) {
    absl::StatusOr<std::unique_ptr<Agent>> agent = start.get();
    if (agent.ok()) {
      EXPECT_EQ(winner, nullptr);
      winner = *std::move(agent);
    } else {
      refused.push_back(agent.status());
    }
  }
  ASSERT_NE(winner, nullptr);
  EXPECT_THAT(refused, testing::Each(StatusIs(
                           absl::StatusCode::kAlreadyExists,
                           HasSubstr(ToString(winner->info().incarnation)))));
  EXPECT_THAT(winner->Sync("w0", kAdd, 1, 2), IsOkAndHolds(3));
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentMembersTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
