#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/leave/graceful_leave.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/fakes/leaving_worker.h"
#include "store/barrier.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kTimeout = LeavingWorker::kTimeout;
constexpr absl::Duration kPause = LeavingWorker::kHeartbeatInterval;
constexpr absl::Duration kStep = absl::Milliseconds(5);

absl::Status LostError(const WorkerInfo& worker) {
  return WithErrorDetail(
      absl::UnavailableError(absl::StrCat(ToString(worker), " is lost")),
      worker, /*maybe_applied=*/false);
}

class StaticLeaveTest : public testing::Test {
 protected:
  using Workers = std::vector<std::unique_ptr<LeavingWorker>>;

  Workers MakeWorkers(int world_size) {
    Workers workers;
    for (int rank = 0; rank < world_size; ++rank) {
      workers.push_back(
          std::make_unique<LeavingWorker>(rank, world_size, &store_, &clock_));
    }
    return workers;
  }

  // All closures of each worker, and then some time.
  void Step(const Workers& workers) {
    for (const auto& worker : workers) worker->control.RunAll();
    clock_.AdvanceBy(kStep);
  }
  // For `time` of the clock.
  void RunFor(const Workers& workers, absl::Duration time) {
    const async::MonotonicTime end = async::AddDelay(clock_.Now(), time);
    while (clock_.Now() < end) Step(workers);
  }
  // Until all leaves have ended, or their deadline has passed.
  void RunToEnd(const Workers& workers) {
    const async::MonotonicTime end =
        async::AddDelay(clock_.Now(), kTimeout + absl::Seconds(1));
    for (const auto& worker : workers) {
      while (!worker->ended() && clock_.Now() < end) Step(workers);
    }
  }

  // Whether `worker` has arrived at a barrier.
  bool HasArrived(const LeavingWorker& worker, std::string_view barrier) {
    const std::vector<store::Barrier::Participant> one = {
        WorkerDirectory::ParticipantOf(worker.self)};
    return WorkerDirectory(&store_, "job")
        .BarrierOf(barrier, FakeServiceHost::MakeWorker(0).incarnation)
        .CheckAllArrived(one)
        .ok();
  }
  // Runs until `worker` has arrived at a barrier, and no step further.
  void RunUntilArrived(const Workers& workers, const LeavingWorker& worker,
                       std::string_view barrier) {
    const async::MonotonicTime end = async::AddDelay(clock_.Now(), kTimeout);
    while (!HasArrived(worker, barrier)) {
      ASSERT_LT(clock_.Now(), end) << barrier;
      if (!RunOneUntilArrived(workers, worker, barrier)) {
        clock_.AdvanceBy(kStep);
      }
    }
  }

 private:
  // Runs one closure of each worker; returns false if there are none.
  bool RunOneUntilArrived(const Workers& workers, const LeavingWorker& worker,
                          std::string_view barrier) {
    bool ran = false;
    for (const auto& each : workers) {
      ran = each->control.RunOne() || ran;
      if (HasArrived(worker, barrier)) break;
    }
    return ran;
  }

 protected:
  async::SimulatedClock clock_;
  store::HashStore store_{{.clock = &clock_}};
};

TEST_F(StaticLeaveTest, WorkersMeetBeforeTheyDrainAndBeforeTheyEnd) {
  const Workers workers = MakeWorkers(3);
  // The third one still has a call, and keeps the others.
  workers[2]->BeginCall();
  for (const auto& worker : workers) worker->leave->Begin();
  RunFor(workers, absl::Seconds(5));
  EXPECT_THAT(workers[0]->events, IsEmpty());
  EXPECT_THAT(workers[1]->events, IsEmpty());
  EXPECT_THAT(workers[2]->events, IsEmpty());

  // Now its drain keeps them.
  async::Promise<void> drained;
  workers[2]->first.drained = drained.future();
  workers[2]->EndCall();
  RunFor(workers, absl::Seconds(5));
  EXPECT_THAT(workers[0]->events, ElementsAre("drain second", "drain first"));
  EXPECT_TRUE(HasArrived(*workers[0], "quiescence0"));

  drained.Set(absl::OkStatus());
  RunToEnd(workers);
  for (const auto& worker : workers) {
    EXPECT_THAT(worker->result(), IsOk());
    EXPECT_EQ(worker->executor.num_queued(), 0u);
  }
  EXPECT_THAT(workers[0]->events,
              ElementsAre("drain second", "drain first", "stop monitoring",
                          "stop reporting", "await others", "stop membership",
                          "withdraw"));
  EXPECT_THAT(workers[1]->events,
              ElementsAre("drain second", "drain first", "stop monitoring",
                          "stop reporting", "stop membership", "withdraw"));
  EXPECT_EQ(workers[2]->events, workers[1]->events);
  // The last barrier's pauses end by themselves.
  clock_.AdvanceBy(kPause);
  EXPECT_EQ(clock_.num_timers(), 0u);
}

// None stops while another still needs it.
TEST_F(StaticLeaveTest, WorkerEndsOnlyWhenAllHaveArrivedAtTheLastBarrier) {
  const Workers workers = MakeWorkers(2);
  workers[1]->member.SetOnStep([&](std::string_view step) {
    if (step == "stop monitoring") workers[1]->link.SetPartitioned(true);
  });
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[0], "left");
  RunFor(workers, absl::Seconds(1));
  ASSERT_TRUE(workers[1]->link.partitioned());
  EXPECT_FALSE(workers[0]->ended());
  workers[1]->link.SetPartitioned(false);
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
  EXPECT_THAT(workers[1]->result(), IsOk());
}

// Its process may host the store, which the others need to withdraw.
TEST_F(StaticLeaveTest, CoordinatorEndsWhenTheOthersHaveLeft) {
  const Workers workers = MakeWorkers(3);
  async::Promise<void> alone;
  workers[0]->member.SetAlone(alone.future());
  for (const auto& worker : workers) worker->leave->Begin();
  RunFor(workers, absl::Seconds(5));
  EXPECT_THAT(workers[1]->result(), IsOk());
  EXPECT_THAT(workers[2]->result(), IsOk());
  EXPECT_FALSE(workers[0]->ended());
  EXPECT_EQ(workers[0]->events.back(), "await others");
  alone.Set(absl::OkStatus());
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
  EXPECT_EQ(workers[0]->events.back(), "withdraw");
}

TEST_F(StaticLeaveTest, TwoRoundsShowThatAllAreQuiet) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) worker->leave->Begin();
  RunToEnd(workers);
  for (const auto& worker : workers) {
    EXPECT_THAT(worker->result(), IsOk());
    EXPECT_TRUE(HasArrived(*worker, "quiescence1"));
    EXPECT_FALSE(HasArrived(*worker, "quiescence2"));
  }
}

TEST_F(StaticLeaveTest, RoundsRepeatWhileAWorkerMakesCalls) {
  const Workers workers = MakeWorkers(3);
  for (const auto& worker : workers) worker->leave->Begin();
  for (const char* round : {"quiescence0", "quiescence1", "quiescence2"}) {
    RunUntilArrived(workers, *workers[1], round);
    workers[1]->BeginCall();
    workers[1]->EndCall();
  }
  RunToEnd(workers);
  for (const auto& worker : workers) {
    EXPECT_THAT(worker->result(), IsOk());
    // The call of round 2 is seen in round 3, so that round 4 is the last.
    EXPECT_TRUE(HasArrived(*worker, "quiescence4"));
    EXPECT_FALSE(HasArrived(*worker, "quiescence5"));
  }
}

TEST_F(StaticLeaveTest, RoundWaitsForCallsInFlight) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[1], "quiescence0");
  workers[1]->BeginCall();
  RunFor(workers, absl::Seconds(2));
  EXPECT_TRUE(HasArrived(*workers[0], "quiescence1"));
  EXPECT_FALSE(HasArrived(*workers[1], "quiescence1"));
  workers[1]->EndCall();
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
  EXPECT_TRUE(HasArrived(*workers[0], "quiescence2"));
}

TEST_F(StaticLeaveTest, CallsThatDoNotEndInARoundAreReported) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[1], "quiescence0");
  workers[1]->BeginCall();
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("quiescence1"), HasSubstr("rank 1"))));
  EXPECT_THAT(workers[1]->result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr(": 1 own calls have not ended")));
}

TEST_F(StaticLeaveTest, ErrorOfADrainIsReportedByItsWorkerAlone) {
  const Workers workers = MakeWorkers(2);
  workers[1]->second.drained =
      async::MakeReadyFuture<void>(absl::DataLossError("a hole"));
  for (const auto& worker : workers) worker->leave->Begin();
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
  EXPECT_EQ(workers[1]->result(), absl::DataLossError("a hole"));
  EXPECT_EQ(workers[1]->events.back(), "withdraw");
}

TEST_F(StaticLeaveTest, CallsAfterAnErrorDoNotRepeatTheRounds) {
  const Workers workers = MakeWorkers(2);
  workers[1]->second.drained =
      async::MakeReadyFuture<void>(absl::DataLossError("a hole"));
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[1], "quiescence0");
  workers[1]->BeginCall();
  workers[1]->EndCall();
  RunToEnd(workers);
  EXPECT_TRUE(HasArrived(*workers[1], "quiescence1"));
  EXPECT_FALSE(HasArrived(*workers[1], "quiescence2"));
}

TEST_F(StaticLeaveTest, LostPeerEndsTheFirstBarrierWithItsName) {
  const Workers workers = MakeWorkers(2);
  workers[0]->leave->Begin();
  RunFor(workers, absl::Seconds(1));
  EXPECT_FALSE(workers[0]->ended());
  workers[0]->member.LosePeer(LostError(workers[1]->self));
  Step(workers);
  workers[0]->control.RunAll();
  EXPECT_EQ(workers[0]->result(), LostError(workers[1]->self));
  EXPECT_THAT(workers[0]->events, IsEmpty());
}

TEST_F(StaticLeaveTest, LostCoordinatorEndsTheFirstBarrierWithItsName) {
  const Workers workers = MakeWorkers(2);
  workers[1]->leave->Begin();
  RunFor(workers, absl::Seconds(1));
  EXPECT_FALSE(workers[1]->ended());
  workers[1]->member.LosePeer(LostError(workers[0]->self));
  workers[1]->control.RunAll();
  EXPECT_EQ(workers[1]->result(), LostError(workers[0]->self));
}

TEST_F(StaticLeaveTest, LostPeerEndsTheLastBarrierAfterTheWithdrawal) {
  const Workers workers = MakeWorkers(2);
  workers[1]->member.SetOnStep([&](std::string_view step) {
    if (step == "stop monitoring") workers[1]->link.SetPartitioned(true);
  });
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[0], "left");
  workers[0]->member.LosePeer(LostError(workers[1]->self));
  RunFor(workers, absl::Seconds(1));
  EXPECT_EQ(workers[0]->result(), LostError(workers[1]->self));
  EXPECT_EQ(workers[0]->events.back(), "withdraw");
}

TEST_F(StaticLeaveTest, LostPeerEndsARoundWithItsName) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) worker->leave->Begin();
  async::Promise<void> never;
  workers[1]->second.drained = never.future();
  RunUntilArrived(workers, *workers[0], "quiescence0");
  workers[0]->member.LosePeer(LostError(workers[1]->self));
  RunFor(workers, absl::Seconds(1));
  EXPECT_EQ(workers[0]->result(), LostError(workers[1]->self));
  EXPECT_EQ(workers[0]->events.back(), "drain first");
}

// A worker that has arrived may end, and be found lost, at once.
TEST_F(StaticLeaveTest, PeerThatArrivedBeforeItWasLostIsNotAnError) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[1], "left");
  workers[0]->member.LosePeer(LostError(workers[1]->self));
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
}

TEST_F(StaticLeaveTest, MissingWorkersAreNamedAtTheDeadline) {
  const Workers workers = MakeWorkers(3);
  workers[1]->leave->Begin();
  RunFor(workers, kTimeout - absl::Milliseconds(10));
  EXPECT_FALSE(workers[1]->ended());
  RunFor(workers, absl::Milliseconds(20));
  EXPECT_THAT(
      workers[1]->result(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("leaving"), HasSubstr("rank 0, rank 2"))));
  EXPECT_THAT(workers[1]->events, IsEmpty());
}

TEST_F(StaticLeaveTest, StoreThatIsAwayForAMomentIsTriedAgain) {
  const Workers workers = MakeWorkers(2);
  for (const auto& worker : workers) {
    worker->link.SetPartitioned(true);
    worker->leave->Begin();
  }
  RunFor(workers, absl::Seconds(5));
  EXPECT_FALSE(workers[0]->ended());
  workers[0]->link.SetPartitioned(false);
  workers[1]->link.SetPartitioned(false);
  RunUntilArrived(workers, *workers[0], "quiescence0");
  workers[0]->link.SetPartitioned(true);
  RunFor(workers, absl::Seconds(5));
  EXPECT_FALSE(workers[0]->ended());
  workers[0]->link.SetPartitioned(false);
  RunToEnd(workers);
  EXPECT_THAT(workers[0]->result(), IsOk());
  EXPECT_THAT(workers[1]->result(), IsOk());
}

TEST_F(StaticLeaveTest, StoreThatStaysAwayFailsTheLeaveAtTheDeadline) {
  const Workers workers = MakeWorkers(2);
  workers[0]->link.SetPartitioned(true);
  workers[0]->leave->Begin();
  RunFor(workers, kTimeout - absl::Milliseconds(10));
  EXPECT_FALSE(workers[0]->ended());
  RunFor(workers, absl::Milliseconds(20));
  EXPECT_THAT(workers[0]->result(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the store is out of reach")));
}

// The process that hosts the store may see the barrier complete and exit first.
TEST_F(StaticLeaveTest, StoreThatEndsDuringTheLastBarrierEndsTheLeave) {
  const Workers workers = MakeWorkers(2);
  workers[0]->member.SetOnStep([&](std::string_view step) {
    if (step == "stop monitoring") workers[0]->link.SetPartitioned(true);
  });
  for (const auto& worker : workers) worker->leave->Begin();
  RunUntilArrived(workers, *workers[1], "left");
  RunFor(workers, absl::Seconds(2));
  EXPECT_FALSE(workers[1]->ended());
  workers[1]->link.SetPartitioned(true);
  workers[1]->member.SetWithdraw(absl::UnavailableError("out of reach"));
  RunFor(workers, 2 * kPause);
  EXPECT_THAT(workers[1]->result(), IsOk());
  EXPECT_EQ(workers[1]->events.back(), "withdraw");
}

TEST_F(StaticLeaveTest, OtherErrorsOfTheWithdrawalAreReported) {
  const Workers workers = MakeWorkers(2);
  workers[1]->member.SetWithdraw(absl::DataLossError("emptied"));
  for (const auto& worker : workers) worker->leave->Begin();
  RunToEnd(workers);
  EXPECT_EQ(workers[1]->result(), absl::DataLossError("emptied"));
}

TEST_F(StaticLeaveTest, AbandonedLeaveArrivesAtNoFurtherBarrier) {
  const Workers workers = MakeWorkers(2);
  workers[1]->leave->Begin();
  RunFor(workers, absl::Seconds(1));
  workers[1]->leave->Abandon();
  EXPECT_THAT(workers[1]->result(), StatusIs(absl::StatusCode::kCancelled));
  workers[0]->leave->Begin();
  RunUntilArrived(workers, *workers[0], "quiescence0");
  RunFor(workers, absl::Seconds(1));
  EXPECT_FALSE(HasArrived(*workers[1], "quiescence0"));
  EXPECT_THAT(workers[1]->events, IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
