#include "rpc/membership/membership.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

std::string Text(const MemberEvent& event) {
  const char* kinds[] = {"joined ", "left ", "lost "};
  return kinds[static_cast<int>(event.kind)] + event.worker.name;
}

// A clock of a process that may stall: time passes without running timers.
class DozingClock final : public async::Clock {
 public:
  async::MonotonicTime Now() const override {
    return async::AddDelay(awake_.Now(), dozed_);
  }
  async::TimerId CallAt(async::MonotonicTime time, Callback callback) override {
    return awake_.CallAt(async::AddDelay(time, -dozed_), std::move(callback));
  }
  bool Cancel(async::TimerId timer) override { return awake_.Cancel(timer); }

  void AdvanceBy(absl::Duration delay) { awake_.AdvanceBy(delay); }
  void Doze(absl::Duration time) { dozed_ += time; }

 private:
  async::SimulatedClock awake_;
  absl::Duration dozed_;
};

// Members with a common store, clock and thread.
class MembershipTest : public testing::Test {
 protected:
  static WorkerInfo Worker(int rank) {
    return {.name = "w" + std::to_string(rank),
            .id = WorkerId(rank),
            .incarnation = Incarnation{100 + static_cast<uint64_t>(rank)},
            .address = "inproc:1"};
  }

  void Join(int rank) { Join(rank, &log_); }
  void Join(int rank, MembershipLog* log) {
    const WorkerInfo self = Worker(rank);
    ASSERT_THAT(log_.Renew(self.incarnation, 0, absl::Seconds(3)), IsOk());
    ASSERT_THAT(log_.Append(JoinedEvent(self)), IsOk());
    if (static_cast<size_t>(rank) >= members_.size()) {
      members_.resize(rank + 1);
      events_.resize(rank + 1);
    }
    members_[rank] = std::make_unique<Membership>(
        Membership::Options{.self = self,
                            .liveness = {},
                            .clock = &clock_,
                            .executor = &executor_,
                            .log = log},
        [this, rank](const MemberEvent& event) {
          events_[rank].push_back(Text(event));
          if (members_[rank]->MaybeFenced(clock_.Now())) {
            events_[rank].back() += " maybe fenced";
          }
        });
    members_[rank]->Start();
    executor_.RunAll();
  }

  void Advance(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock_.AdvanceBy(absl::Milliseconds(100));
      executor_.RunAll();
    }
  }

  async::ManualExecutor executor_;
  DozingClock clock_;
  store::HashStore store_{{.clock = &clock_}};
  MembershipLog log_{&store_, "job"};
  std::vector<std::vector<std::string>> events_{8};
  std::vector<std::unique_ptr<Membership>> members_;
};

TEST_F(MembershipTest, AllSeeTheSameEventsInTheSameOrder) {
  for (int rank = 0; rank < 3; ++rank) Join(rank);
  ASSERT_THAT(log_.Append(LeftEvent(Worker(1).incarnation)), IsOk());
  members_[1].reset();
  Advance(absl::Seconds(1));
  EXPECT_THAT(events_[0],
              ElementsAre("joined w0", "joined w1", "joined w2", "left w1"));
  EXPECT_EQ(events_[2], events_[0]);
}

TEST_F(MembershipTest, NewMemberReportsEarlierDeparturesButNotTheirJoins) {
  for (int rank = 0; rank < 4; ++rank) Join(rank);
  ASSERT_THAT(log_.Append(LeftEvent(Worker(1).incarnation)), IsOk());
  ASSERT_THAT(log_.Append(LostEvent(Worker(3).incarnation,
                                    Worker(0).incarnation, "test")),
              IsOk());
  members_[1].reset();
  members_[3].reset();
  Join(4);
  EXPECT_THAT(events_[4], ElementsAre("left w1", "lost w3", "joined w0",
                                      "joined w2", "joined w4"));
  ASSERT_THAT(log_.Append(LeftEvent(Worker(2).incarnation)), IsOk());
  members_[2].reset();
  Advance(absl::Seconds(1));
  EXPECT_EQ(events_[4].back(), "left w2");
  EXPECT_EQ(events_[4].size(), 6u);
}

// Even if reading the log takes longer than the lease lasts.
TEST_F(MembershipTest, NewMemberKeepsItsLeaseWhileItReadsALongLog) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    ASSERT_THAT(log_.Append(LeftEvent(Incarnation{1000 + i})), IsOk());
  }
  std::string lease;
  async::MonotonicTime renewed = clock_.Now();
  absl::Duration longest;
  SimulatedStoreLink slow(&store_, {.on_read = [&](const std::string&) {
    clock_.AdvanceBy(absl::Milliseconds(20));
    const auto now = log_.ReadLease(Worker(0).incarnation);
    ASSERT_THAT(now, IsOk());
    if (*now == lease) return;
    lease = *now;
    longest = std::max(longest, async::TimeBetween(renewed, clock_.Now()));
    renewed = clock_.Now();
  }});
  MembershipLog slow_log(&slow, "job");
  Join(0, &slow_log);
  EXPECT_THAT(events_[0], ElementsAre("joined w0"));
  EXPECT_GT(longest, absl::Milliseconds(400));
  EXPECT_LT(longest, absl::Milliseconds(600));
  EXPECT_LT(async::TimeBetween(renewed, clock_.Now()), absl::Milliseconds(600));
}

TEST_F(MembershipTest, CatchUpReportsTheEventsInTheLogBeforeItIsDone) {
  for (int rank = 0; rank < 2; ++rank) Join(rank);
  ASSERT_THAT(log_.Append(LeftEvent(Worker(1).incarnation)), IsOk());
  std::vector<std::string> reported;
  members_[0]->CatchUp([&] { reported = events_[0]; });
  executor_.RunAll();
  EXPECT_THAT(reported, ElementsAre("joined w0", "joined w1", "left w1"));
}

TEST_F(MembershipTest, StopDropsPendingCatchUps) {
  Join(0);
  auto waits = std::make_shared<bool>(false);
  members_[0]->CatchUp([waits] { *waits = true; });
  members_[0]->Stop();
  members_[0]->CatchUp([waits] { *waits = true; });
  EXPECT_EQ(waits.use_count(), 1);
  executor_.RunAll();
  EXPECT_FALSE(*waits);
}

TEST_F(MembershipTest, WorkerThatIsLostBeforeItJoinedLearnsIt) {
  ASSERT_THAT(log_.Append(LostEvent(Worker(0).incarnation,
                                    Worker(1).incarnation, "was replaced")),
              IsOk());
  Join(0);
  EXPECT_THAT(events_[0], ElementsAre("lost w0"));
}

TEST_F(MembershipTest, LapsedLeaseIsLostWithinThreeAndAHalfSecondsOnce) {
  for (int rank = 0; rank < 4; ++rank) Join(rank);
  Advance(absl::Seconds(30));
  EXPECT_EQ(events_[0].size(), 4u);
  members_[2].reset();
  Advance(absl::Milliseconds(2400));
  EXPECT_EQ(events_[0].size(), 4u);
  Advance(absl::Milliseconds(1600));
  for (int rank : {0, 1, 3}) {
    EXPECT_THAT(events_[rank], IsSupersetOf({"lost w2"}));
    EXPECT_EQ(events_[rank].size(), 5u);
  }
}

// It keeps its lease only while it can read from the store, not merely write.
TEST_F(MembershipTest, WorkerThatCannotReadTheStoreLosesItsLease) {
  bool deaf = false;
  bool on_way_back = false;
  SimulatedStoreLink link(&store_, {.on_way = [&] {
    if (deaf) link.SetPartitioned(std::exchange(on_way_back, !on_way_back));
  }});
  MembershipLog deaf_log(&link, "job");
  Join(0, &deaf_log);
  Join(1);
  Advance(absl::Seconds(5));
  deaf = true;
  Advance(absl::Milliseconds(3600));
  EXPECT_THAT(events_[1], IsSupersetOf({"lost w0"}));
  members_[0].reset();
}

// The member before them watches the leases of all of them, one pair after the
// other, which have lapsed together.
TEST_F(MembershipTest, WorkersThatDieTogetherAreAllLost) {
  for (int rank = 0; rank < 7; ++rank) Join(rank);
  Advance(absl::Seconds(5));
  for (int rank : {1, 2, 3, 4, 5}) members_[rank].reset();
  // The silent limit, and a pause for each pair.
  Advance(absl::Milliseconds(3600));
  for (int rank : {0, 6}) EXPECT_EQ(events_[rank].size(), 12u);
}

// Members that joined between it and its observer cannot know yet that it is
// dead.
TEST_F(MembershipTest, SuspectIsLostInTimeThoughOthersJoin) {
  for (int rank : {0, 3}) Join(rank);
  Advance(absl::Seconds(5));
  members_[3].reset();
  Advance(absl::Seconds(2));
  for (int rank : {1, 2}) Join(rank);
  Advance(absl::Milliseconds(1600));
  EXPECT_THAT(events_[0], IsSupersetOf({"lost w3"}));
}

TEST_F(MembershipTest, FirstOfTwoMutualReportsWins) {
  for (int rank = 0; rank < 3; ++rank) Join(rank);
  Advance(absl::Seconds(1));
  members_[1]->ReportSuspect(Worker(0), "is out of reach");
  members_[0]->ReportSuspect(Worker(1), "is out of reach");
  Advance(absl::Seconds(5));
  for (int rank : {0, 1, 2}) {
    EXPECT_THAT(events_[rank],
                ElementsAre("joined w0", "joined w1", "joined w2", "lost w0"));
  }
}

// It wrote before it had read that it was lost.
TEST_F(MembershipTest, ReportOfALostReporterIsIgnored) {
  for (int rank = 0; rank < 3; ++rank) Join(rank);
  const auto report = [this](int lost, int reporter) {
    ASSERT_THAT(log_.Append(LostEvent(Worker(lost).incarnation,
                                      Worker(reporter).incarnation, "test")),
                IsOk());
  };
  report(0, 1);
  report(1, 0);
  Advance(absl::Seconds(1));
  for (int rank : {0, 1, 2}) {
    EXPECT_THAT(events_[rank],
                ElementsAre("joined w0", "joined w1", "joined w2", "lost w0"));
  }
  // The report of a live worker is not ignored.
  report(1, 2);
  Advance(absl::Seconds(1));
  EXPECT_EQ(events_[2].back(), "lost w1");
}

TEST_F(MembershipTest, LostWorkerWritesNothingMore) {
  for (int rank = 0; rank < 3; ++rank) Join(rank);
  ASSERT_THAT(log_.Append(LostEvent(Worker(0).incarnation,
                                    Worker(1).incarnation, "test")),
              IsOk());
  Advance(absl::Seconds(1));
  ASSERT_EQ(events_[0].back(), "lost w0");
  const auto events = log_.ReadAll();
  ASSERT_THAT(events, IsOk());
  members_[0]->ReportSuspect(Worker(2), "test");
  Advance(absl::Seconds(5));
  EXPECT_THAT(log_.ReadLease(Worker(0).incarnation), IsOkAndHolds(""));
  EXPECT_THAT(log_.ReadAll(), IsOkAndHolds(SizeIs(events->size())));
}

TEST_F(MembershipTest, LostWorkerReportsItsLossWhileMaybeFenced) {
  for (int rank = 0; rank < 2; ++rank) Join(rank);
  EXPECT_FALSE(members_[0]->MaybeFenced(clock_.Now()));
  ASSERT_THAT(log_.Append(LostEvent(Worker(0).incarnation,
                                    Worker(1).incarnation, "test")),
              IsOk());
  clock_.Doze(absl::Seconds(4));
  EXPECT_TRUE(members_[0]->MaybeFenced(clock_.Now()));
  Advance(absl::Milliseconds(500));
  EXPECT_THAT(events_[0], IsSupersetOf({"lost w0 maybe fenced"}));
}

// It read the log before the stall.
TEST_F(MembershipTest, StalledRoundDoesNotResolveTheStall) {
  // Since the log was read.
  int num_ways = 0;
  std::function<void()> on_way_back;
  SimulatedStoreLink link(&store_,
                          {.on_read =
                               [&](const std::string& key) {
                                 if (absl::StrContains(key, "/members/"))
                                   num_ways = 0;
                               },
                           .on_way =
                               [&] {
                                 if (++num_ways != 2 || on_way_back == nullptr)
                                   return;
                                 std::exchange(on_way_back, nullptr)();
                               }});
  MembershipLog slow_log(&link, "job");
  Join(0, &slow_log);
  on_way_back = [&] {
    ASSERT_THAT(log_.Append(LostEvent(Worker(0).incarnation,
                                      Worker(1).incarnation, "test")),
                IsOk());
    clock_.Doze(absl::Seconds(4));
    clock_.AdvanceBy(absl::Milliseconds(500));
  };
  members_[0]->CatchUp([] {});
  executor_.RunAll();
  EXPECT_THAT(events_[0], ElementsAre("joined w0", "lost w0 maybe fenced"));
  EXPECT_FALSE(members_[0]->MaybeFenced(clock_.Now()));
  members_[0].reset();
}

// Their leases lapse, although all of them live.
TEST_F(MembershipTest, StoreThatWasOutOfReachForAllCausesNoLosses) {
  std::vector<std::unique_ptr<SimulatedStoreLink>> links;
  std::vector<std::unique_ptr<MembershipLog>> logs;
  for (int rank = 0; rank < 4; ++rank) {
    links.push_back(std::make_unique<SimulatedStoreLink>(&store_));
    logs.push_back(std::make_unique<MembershipLog>(links.back().get(), "job"));
    Join(rank, logs.back().get());
  }
  Advance(absl::Seconds(5));
  EXPECT_LE(members_[0]->lease_age(clock_.Now()), absl::Seconds(5));
  for (const auto& link : links) link->SetPartitioned(true);
  Advance(absl::Seconds(60));
  EXPECT_GE(members_[0]->lease_age(clock_.Now()), absl::Seconds(60));
  EXPECT_THAT(log_.ReadLease(Worker(0).incarnation), IsOkAndHolds(""));
  EXPECT_FALSE(members_[0]->store_reachable());
  // They come back one after another.
  for (const auto& link : links) {
    link->SetPartitioned(false);
    Advance(absl::Milliseconds(700));
  }
  Advance(absl::Seconds(30));
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(events_[rank].size(), 4u);
  // One that stays away is lost after all.
  links[3]->SetPartitioned(true);
  Advance(absl::Milliseconds(3600));
  EXPECT_EQ(events_[0].back(), "lost w3");
  members_.clear();
}

// The workers stall, and the store does not.
TEST_F(MembershipTest, StallOfAllWorkersCausesNoLosses) {
  for (int rank = 0; rank < 4; ++rank) Join(rank);
  Advance(absl::Seconds(5));
  // Timers run, and the executor does not.
  for (int i = 0; i < 100; ++i) clock_.AdvanceBy(absl::Milliseconds(100));
  Advance(absl::Seconds(10));
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(events_[rank].size(), 4u);
}

// An idle worker renews its lease, and does nothing else.
TEST_F(MembershipTest, IdleWorkerCallsTheStoreOncePerInterval) {
  int calls = 0;
  SimulatedStoreLink counted(&store_, {.on_way = [&] { ++calls; }});
  MembershipLog counted_log(&counted, "job");
  Join(0, &counted_log);
  for (int rank = 1; rank < 8; ++rank) Join(rank);
  Advance(absl::Seconds(10));
  calls = 0;
  Advance(absl::Seconds(10));
  // Each call goes to the store and back.
  EXPECT_EQ(calls, 2 * 20);
  members_[0].reset();
}

// The lease lasts as long as the store allows.
TEST_F(MembershipTest, WorkerWithAShortSilentLimitKeepsItsLease) {
  const WorkerInfo self = Worker(0);
  ASSERT_THAT(log_.Append(JoinedEvent(self)), IsOk());
  Membership membership(
      {.self = self,
       .liveness = {.heartbeat_interval = absl::Milliseconds(20),
                    .silent_limit = absl::Milliseconds(60)},
       .clock = &clock_,
       .executor = &executor_,
       .log = &log_},
      [](const MemberEvent&) {});
  membership.Start();
  executor_.RunAll();
  EXPECT_TRUE(membership.store_reachable());
  EXPECT_THAT(log_.ReadLease(self.incarnation), IsOkAndHolds("1"));
}

TEST_F(MembershipTest, EmptiedStoreCausesNoLosses) {
  for (int rank = 0; rank < 2; ++rank) Join(rank);
  Advance(absl::Seconds(1));
  ASSERT_THAT(store_.Delete("rpc/job/members/1"), IsOkAndHolds(true));
  members_[1].reset();
  Advance(absl::Seconds(10));
  EXPECT_THAT(events_[0], ElementsAre("joined w0", "joined w1"));
  EXPECT_FALSE(members_[0]->store_reachable());
  MembershipLog fresh(&store_, "job");
  EXPECT_THAT(fresh.ReadAll(), IsOkAndHolds(IsEmpty()));
}

// Others measure from its last renewal, up to two intervals before it stalled,
// so they may have declared it lost after less than `silent_limit`.
TEST_F(MembershipTest, StallMayMeanFencedTwoIntervalsBeforeTheLimit) {
  const LivenessOptions liveness;
  const absl::Duration doubtful =
      liveness.silent_limit - 2 * liveness.heartbeat_interval;
  for (int rank = 0; rank < 2; ++rank) Join(rank);
  EXPECT_FALSE(
      members_[0]->MaybeFenced(async::AddDelay(clock_.Now(), doubtful)));
  EXPECT_TRUE(members_[0]->MaybeFenced(
      async::AddDelay(clock_.Now(), doubtful + absl::Milliseconds(1))));
}

}  // namespace
}  // namespace hawser::rpc
