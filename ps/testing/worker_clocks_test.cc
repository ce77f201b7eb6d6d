#include "ps/storage/worker_clocks.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/table_files.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_partition.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

using PushState = WorkerClocks::PushState;

// The clocks of the workers 1, 2, ..., each with its first join.
class WorkerClocksTest : public testing::Test {
 protected:
  static rpc::Incarnation Id(uint64_t worker) {
    return rpc::Incarnation{worker};
  }

  void Make(Consistency consistency) {
    clocks_ = std::make_unique<WorkerClocks>(consistency);
  }

  absl::Status Record(v1::ClockEvent::Kind kind, uint64_t worker,
                      WorkerTime time, int64_t pushes = 0,
                      int64_t num_workers = 1) {
    v1::ClockEvent event;
    event.set_kind(kind);
    event.set_worker(worker);
    event.set_join(time.join);
    event.set_clock(time.clock);
    event.set_num_pushes(pushes);
    event.set_num_workers(num_workers);
    event.set_name("w" + std::to_string(worker));
    const absl::StatusOr<bool> changes = clocks_->Check(event);
    if (!changes.ok()) return changes.status();
    if (*changes) clocks_->Apply(event);
    return absl::OkStatus();
  }
  absl::Status Join(uint64_t worker, int64_t num_workers = 1) {
    return Record(v1::ClockEvent::JOIN, worker, {1, 0}, 0, num_workers);
  }
  absl::Status Advance(uint64_t worker, int64_t clock, int64_t pushes = 0) {
    return Record(v1::ClockEvent::ADVANCE, worker, {1, clock}, pushes);
  }
  absl::Status Leave(uint64_t worker, int64_t clock) {
    return Record(v1::ClockEvent::LEAVE, worker, {1, clock});
  }
  absl::Status Lose(uint64_t worker) {
    return Record(v1::ClockEvent::LOST, worker, {});
  }

  bool CanPull(uint64_t worker, int64_t clock) {
    const absl::StatusOr<bool> can = clocks_->CanPull(Id(worker), {1, clock});
    EXPECT_THAT(can, IsOk());
    return can.ok() && *can;
  }
  PushState Find(uint64_t worker, uint64_t sequence, int64_t clock) {
    const auto state = clocks_->FindPush({Id(worker), sequence}, {1, clock});
    EXPECT_THAT(state, IsOk());
    return state.ok() ? *state : PushState::kNew;
  }
  void Apply(uint64_t worker, uint64_t sequence, int64_t clock) {
    clocks_->PushApplied({Id(worker), sequence}, {1, clock});
  }
  void Arrive(uint64_t worker, uint64_t sequence, int64_t clock) {
    clocks_->PushArrived({Id(worker), sequence}, {1, clock});
  }
  // What a server that is started again has.
  void Restart(Consistency consistency) {
    auto restarted = WorkerClocks::FromProto(consistency, clocks_->ToProto());
    ASSERT_THAT(restarted, IsOk());
    clocks_ = *std::move(restarted);
  }

  std::unique_ptr<WorkerClocks> clocks_;
};

TEST_F(WorkerClocksTest, APullWaitsForWorkersThatAreTooFarBehind) {
  Make(Consistency::BoundedStaleness(2));
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Join(2, 2), IsOk());
  for (int64_t clock = 1; clock <= 3; ++clock) {
    ASSERT_THAT(Advance(1, clock), IsOk());
  }
  EXPECT_TRUE(CanPull(1, 2));
  EXPECT_FALSE(CanPull(1, 3));
  EXPECT_THAT(clocks_->WaitsFor(Id(1), {1, 3}),
              HasSubstr("'w2' at clock 0 to reach clock 1"));
  // Its own pushes must have arrived.
  EXPECT_EQ(clocks_->WaitsFor(Id(1), {1, 4}),
            "for 'w2' at clock 0 to reach clock 2, 'w1' at clock 3 to reach "
            "clock 4");
  EXPECT_TRUE(CanPull(2, 0));
  ASSERT_THAT(Advance(2, 1), IsOk());
  EXPECT_TRUE(CanPull(1, 3));
}

TEST_F(WorkerClocksTest, AClockCountsOnceItsPushesHaveArrived) {
  Make(Consistency::BoundedStaleness(0));
  ASSERT_THAT(Join(1), IsOk());
  ASSERT_THAT(Advance(1, 1, 2), IsOk());
  EXPECT_FALSE(CanPull(1, 1));
  Apply(1, 7, 0);
  Apply(1, 7, 0);
  EXPECT_FALSE(CanPull(1, 1));
  EXPECT_EQ(Find(1, 7, 0), PushState::kApplied);
  EXPECT_EQ(Find(1, 6, 0), PushState::kNew);
  Apply(1, 6, 0);
  EXPECT_TRUE(CanPull(1, 1));
  EXPECT_THAT(clocks_->FindPush({Id(1), 5}, {1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all pushes were sent")));
}

TEST_F(WorkerClocksTest, MessagesComeInAnyOrder) {
  Make(Consistency::BoundedStaleness(0));
  ASSERT_THAT(Join(1), IsOk());
  Apply(1, 3, 2);
  ASSERT_THAT(Advance(1, 3, 1), IsOk());
  ASSERT_THAT(Advance(1, 2, 1), IsOk());
  EXPECT_EQ(clocks_->completed(), 0);
  ASSERT_THAT(Advance(1, 1, 1), IsOk());
  Apply(1, 2, 1);
  EXPECT_EQ(clocks_->completed(), 0);
  Apply(1, 1, 0);
  EXPECT_EQ(clocks_->completed(), 3);
  // Late repetitions.
  ASSERT_THAT(Advance(1, 2, 5), IsOk());
  ASSERT_THAT(Join(1), IsOk());
  EXPECT_EQ(clocks_->ClockOf(Id(1)), 3);
}

TEST_F(WorkerClocksTest, NoClockIsCompleteBeforeTheWorkersHaveJoined) {
  Make(Consistency::BoundedStaleness(0));
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Advance(1, 1), IsOk());
  EXPECT_FALSE(CanPull(1, 1));
  EXPECT_THAT(clocks_->WaitsFor(Id(1), {1, 1}),
              HasSubstr("2 workers to join, of which 1 have"));
  // The same worker after a restart is not another one.
  ASSERT_THAT(Lose(1), IsOk());
  v1::ClockEvent again;
  again.set_kind(v1::ClockEvent::JOIN);
  again.set_worker(11);
  again.set_name("w1");
  again.set_join(1);
  again.set_num_workers(2);
  ASSERT_THAT(clocks_->Check(again), IsOk());
  clocks_->Apply(again);
  ASSERT_THAT(Advance(11, 1), IsOk());
  EXPECT_FALSE(CanPull(11, 1));
  ASSERT_THAT(Join(2, 2), IsOk());
  EXPECT_FALSE(CanPull(11, 1));
  ASSERT_THAT(Advance(2, 1), IsOk());
  EXPECT_TRUE(CanPull(11, 1));
}

TEST_F(WorkerClocksTest, AWorkerThatJoinsLateBeginsAtTheFirstOpenClock) {
  Make(Consistency::BoundedStaleness(1));
  ASSERT_THAT(Join(1), IsOk());
  ASSERT_THAT(Advance(1, 1), IsOk());
  ASSERT_THAT(Advance(1, 2), IsOk());
  ASSERT_THAT(Join(2), IsOk());
  EXPECT_EQ(clocks_->ClockOf(Id(2)), 2);
  // Another server was ahead.
  ASSERT_THAT(Record(v1::ClockEvent::JOIN, 2, {1, 3}), IsOk());
  EXPECT_EQ(clocks_->ClockOf(Id(2)), 3);
  EXPECT_EQ(clocks_->completed(), 2);
}

TEST_F(WorkerClocksTest, WorkersThatEndHoldNobodyUp) {
  Make(Consistency::BoundedStaleness(0));
  ASSERT_THAT(Join(1, 3), IsOk());
  ASSERT_THAT(Join(2, 3), IsOk());
  ASSERT_THAT(Join(3, 3), IsOk());
  ASSERT_THAT(Advance(1, 1), IsOk());
  ASSERT_THAT(Advance(2, 1, 1), IsOk());
  ASSERT_THAT(Leave(2, 1), IsOk());
  ASSERT_THAT(Lose(3), IsOk());
  // The pushes of worker 2 are still to come.
  EXPECT_FALSE(CanPull(1, 1));
  EXPECT_FALSE(clocks_->HasLeft(Id(2), 1));
  Apply(2, 1, 0);
  EXPECT_TRUE(CanPull(1, 1));
  EXPECT_TRUE(clocks_->HasLeft(Id(2), 1));
  // A late repetition of its join does not bring it back.
  EXPECT_THAT(Join(2),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
  EXPECT_THAT(clocks_->FindPush({Id(3), 1}, {1, 0}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has not joined")));
}

TEST_F(WorkerClocksTest, AbandonedClocksDoNotCount) {
  Make(Consistency::Synchronous());
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Join(2, 2), IsOk());
  Arrive(1, 1, 0);
  ASSERT_THAT(Advance(1, 1, 1), IsOk());
  Arrive(1, 2, 1);
  ASSERT_THAT(Record(v1::ClockEvent::ABANDON, 1, {1, 2}), IsOk());
  EXPECT_TRUE(clocks_->Counts(Id(1), {1, 0}));
  EXPECT_FALSE(clocks_->Counts(Id(1), {1, 1}));
  ASSERT_THAT(Advance(2, 1), IsOk());
  EXPECT_EQ(clocks_->completed(), 1);
  EXPECT_TRUE(clocks_->Counts(Id(1), {1, 0}));
  EXPECT_EQ(clocks_->ClockToApply(), clocks_->applied());
  clocks_->FinishClock();
}

TEST_F(WorkerClocksTest, SynchronousPullsWaitUntilTheClockIsApplied) {
  Make(Consistency::Synchronous());
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Join(2, 2), IsOk());
  Arrive(1, 1, 0);
  EXPECT_EQ(Find(1, 1, 0), PushState::kArrived);
  ASSERT_THAT(Advance(1, 1, 1), IsOk());
  EXPECT_FALSE(CanPull(1, 1));
  EXPECT_TRUE(CanPull(2, 0));
  ASSERT_THAT(Advance(2, 1), IsOk());
  EXPECT_EQ(clocks_->completed(), 1);
  EXPECT_FALSE(CanPull(1, 1));
  Apply(1, 1, 0);
  clocks_->FinishClock();
  EXPECT_TRUE(CanPull(1, 1));
  EXPECT_THAT(clocks_->CanPull(Id(2), {1, 0}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has completed")));
}

TEST_F(WorkerClocksTest, TheRestOfTheWorkIsCompleteWhenAllHaveLeft) {
  Make(Consistency::Synchronous());
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Join(2, 2), IsOk());
  Arrive(1, 1, 0);
  ASSERT_THAT(Advance(1, 1, 1), IsOk());
  ASSERT_THAT(Leave(1, 1), IsOk());
  EXPECT_EQ(clocks_->completed(), 0);
  ASSERT_THAT(Lose(2), IsOk());
  EXPECT_EQ(clocks_->completed(), 1);
  EXPECT_TRUE(clocks_->Counts(Id(1), {1, 0}));
}

TEST_F(WorkerClocksTest, ARestartedServerWaitsForPushesThatWereNotApplied) {
  const Consistency consistency = Consistency::Synchronous();
  Make(consistency);
  ASSERT_THAT(Join(1, 2), IsOk());
  ASSERT_THAT(Join(2, 2), IsOk());
  Arrive(1, 1, 0);
  Arrive(1, 2, 0);
  ASSERT_THAT(Advance(1, 1, 2), IsOk());
  ASSERT_THAT(Leave(1, 1), IsOk());
  ASSERT_THAT(Advance(2, 1), IsOk());
  EXPECT_EQ(clocks_->completed(), 1);
  Apply(1, 1, 0);
  Restart(consistency);
  EXPECT_EQ(clocks_->completed(), 0);
  EXPECT_FALSE(clocks_->HasLeft(Id(1), 1));
  EXPECT_EQ(Find(1, 1, 0), PushState::kApplied);
  EXPECT_EQ(Find(1, 2, 0), PushState::kNew);
  Arrive(1, 2, 0);
  EXPECT_EQ(clocks_->completed(), 1);
  Apply(1, 2, 0);
  clocks_->FinishClock();
  Restart(consistency);
  EXPECT_EQ(clocks_->completed(), 1);
  EXPECT_TRUE(clocks_->HasLeft(Id(1), 1));
  EXPECT_FALSE(clocks_->HasLeft(Id(2), 1));
}

TEST_F(WorkerClocksTest, WhatAWorkerMayMakeOthersHoldIsBounded) {
  Make(Consistency::Synchronous());
  ASSERT_THAT(Join(1, 2), IsOk());
  EXPECT_THAT(Advance(1, WorkerClocks::kMaxAhead + 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("'w1' is at clock 1025")));
  EXPECT_THAT(clocks_->FindPush({Id(1), 1}, {1, WorkerClocks::kMaxAhead + 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  for (uint64_t worker = 2; worker <= WorkerClocks::kMaxWorkers; ++worker) {
    ASSERT_THAT(Join(worker), IsOk());
  }
  EXPECT_THAT(Join(WorkerClocks::kMaxWorkers + 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("4096 workers")));
}

TEST_F(WorkerClocksTest, NumbersOutOfRangeAreRefused) {
  Make(Consistency::Synchronous());
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(""));
  EXPECT_THAT(Join(1, 0), refused);
  EXPECT_THAT(Join(1, 5000), refused);
  EXPECT_THAT(Record(v1::ClockEvent::JOIN, 1, {0, 0}), refused);
  EXPECT_THAT(Record(v1::ClockEvent::JOIN, 1, {1, 5000}), refused);
  ASSERT_THAT(Join(1), IsOk());
  EXPECT_THAT(Advance(1, -1), refused);
  EXPECT_THAT(Advance(1, 1, -1), refused);
  EXPECT_THAT(Record(v1::ClockEvent::UNSPECIFIED, 1, {1, 0}), refused);
  v1::TableClocks damaged = clocks_->ToProto();
  damaged.mutable_workers(0)->set_applied("short");
  EXPECT_THAT(WorkerClocks::FromProto(Consistency::Synchronous(), damaged),
              refused);
}

}  // namespace
}  // namespace hawser::ps
