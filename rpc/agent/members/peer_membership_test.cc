#include "rpc/agent/members/peer_membership.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_control_calls.h"
#include "rpc/testing/fakes/fake_transport.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::Not;
using ::testing::NotNull;
using ::testing::Optional;
using ::testing::SizeIs;

WorkerInfo Worker(int rank, uint64_t incarnation) {
  return {.name = "w" + std::to_string(rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{incarnation},
          .address = "host" + std::to_string(rank) + ":1"};
}

// A clock of a process that may stall: time passes, and no timer runs.
class StallingClock final : public async::Clock {
 public:
  explicit StallingClock(async::SimulatedClock* clock) : clock_(*clock) {}

  void Stall(absl::Duration time) { stalled_ += time; }

  async::MonotonicTime Now() const override {
    return async::AddDelay(clock_.Now(), stalled_);
  }
  async::TimerId CallAt(async::MonotonicTime time, Callback callback) override {
    return clock_.CallAt(async::AddDelay(time, -stalled_), std::move(callback));
  }
  bool Cancel(async::TimerId timer) override { return clock_.Cancel(timer); }

 private:
  async::SimulatedClock& clock_;
  absl::Duration stalled_;
};

// A worker with its membership, and a link of its own to the store.
struct Member {
  struct Loss {
    WorkerInfo worker;
    absl::Status status;
  };
  struct Settings {
    std::optional<int> world_size = std::nullopt;
    absl::Duration start_timeout = absl::Seconds(30);
    // Whether calls to the store wait for keys. The link does not.
    bool waits = false;
    // Null for the clock of the test.
    async::Clock* clock = nullptr;
    // SimulatedStoreLink::Hooks::on_way of its link.
    std::function<void()> on_way = nullptr;
  };

  Member(const WorkerInfo& info, store::Store* store, async::Clock* clock,
         async::Executor* executor, const Settings& settings)
      : self(info),
        link(store, {.on_way = settings.on_way}),
        state(std::make_shared<AgentState>(AgentState::Options{
            .self = info,
            .job = "job",
            .clock = settings.clock != nullptr ? settings.clock : clock,
            .executor = executor,
            .control_executor = executor})),
        membership(PeerMembership::Options{
            .state = state,
            .store = settings.waits ? store : &link,
            .transport = &transport,
            .control = &control,
            .liveness = {},
            .world_size = settings.world_size,
            .start_timeout = settings.start_timeout,
            .on_peer_lost =
                [this](const WorkerInfo& worker, const absl::Status& status) {
                  losses.push_back({worker, status});
                },
            .on_fenced =
                [this] {
                  ++num_fenced;
                  fenced_at_report = state->fenced();
                }}) {}
  ~Member() {
    membership.Stop();
    membership.Disconnect();
  }

  const WorkerInfo self;
  SimulatedStoreLink link;
  FakeTransport transport;
  FakeControlCalls control;
  const std::shared_ptr<AgentState> state;
  std::vector<Loss> losses;
  int num_fenced = 0;
  bool fenced_at_report = false;
  // Outcomes of its heartbeats by the name of the peer; OK if not set.
  std::map<std::string, absl::Status> ping_outcomes;
  PeerMembership membership;
};

// Members of one job, with a common store, clock and thread.
class PeerMembershipTest : public testing::Test {
 protected:
  using Settings = Member::Settings;

  Member& AddMember(int rank) { return AddMember(Worker(rank, 100 + rank)); }
  Member& AddMember(const WorkerInfo& info, const Settings& settings = {}) {
    members_.push_back(
        std::make_unique<Member>(info, &store_, &clock_, &executor_, settings));
    return *members_.back();
  }
  // Adds a member that has joined.
  Member& JoinAs(int rank) {
    Member& member = AddMember(rank);
    EXPECT_THAT(member.membership.JoinGroup(), IsOk());
    EXPECT_THAT(member.membership.Join(), IsOk());
    executor_.RunAll();
    return member;
  }

  // Lets time pass: memberships run their rounds, and heartbeats end.
  void Advance(absl::Duration time) {
    constexpr absl::Duration kStep = absl::Milliseconds(100);
    for (absl::Duration t; t < time; t += kStep) {
      clock_.AdvanceBy(kStep);
      EndPings();
      executor_.RunAll();
    }
  }
  void EndPings() {
    for (const auto& member : members_) {
      while (auto ping = member->control.TakePing()) {
        std::move(ping->done)(member->ping_outcomes[ping->peer->info().name]);
      }
    }
  }

  // The Peer of `other` at `member`.
  static std::shared_ptr<Peer> PeerOf(Member& member, const Member& other) {
    return member.membership.FindSender(other.self.incarnation);
  }
  static void Watch(Member& member, const Member& other) {
    const std::shared_ptr<Peer> peer = PeerOf(member, other);
    ASSERT_THAT(peer, NotNull());
    member.membership.Watch(peer);
  }

  // The departures in the log: "left w1", "lost w1 by w0".
  std::vector<std::string> Departures() {
    const auto events = log_.ReadAll();
    EXPECT_THAT(events, IsOk());
    std::vector<std::string> departures;
    if (!events.ok()) return departures;
    for (const v1::MembershipEvent& event : *events) {
      if (event.has_left()) {
        departures.push_back("left " + NameOf(event.left().incarnation()));
      } else if (event.has_lost()) {
        departures.push_back("lost " + NameOf(event.lost().incarnation()) +
                             " by " + NameOf(event.lost().reporter()));
      }
    }
    return departures;
  }
  std::string NameOf(uint64_t incarnation) const {
    for (const auto& member : members_) {
      if (ToNumber(member->self.incarnation) == incarnation) {
        return member->self.name;
      }
    }
    return std::to_string(incarnation);
  }

  static ErrorDetail LossDetail(const WorkerInfo& worker) {
    return {.worker = worker.name,
            .incarnation = worker.incarnation,
            .maybe_applied = true};
  }

  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  store::HashStore store_{{.clock = &clock_}};
  WorkerDirectory records_{&store_, "job"};
  MembershipLog log_{&store_, "job"};
  std::vector<std::unique_ptr<Member>> members_;
};

// --- Joining.

TEST_F(PeerMembershipTest, MembersLearnOfEachOther) {
  Member& w0 = JoinAs(0);
  std::vector<std::string> joined;
  w0.membership.WatchMembers(
      [&](const MemberEvent& event) { joined.push_back(event.worker.name); });
  Member& w1 = AddMember(1);
  ASSERT_THAT(w1.membership.JoinGroup(), IsOk());
  EXPECT_FALSE(w1.membership.joined());
  EXPECT_EQ(w1.membership.num_events(), 0u);
  EXPECT_THAT(records_.FindByName("w1"), IsOkAndHolds(Eq(std::nullopt)));
  ASSERT_THAT(w1.membership.Join(), IsOk());
  EXPECT_TRUE(w1.membership.joined());
  EXPECT_THAT(records_.FindByName("w1"), IsOkAndHolds(Optional(w1.self)));
  EXPECT_THAT(records_.FindById(WorkerId(1)), IsOkAndHolds(Optional(w1.self)));
  // Before the others, it knows itself.
  EXPECT_THAT(w1.membership.workers(), ElementsAre(w1.self));
  Advance(absl::Seconds(1));
  EXPECT_THAT(w0.membership.workers(), ElementsAre(w0.self, w1.self));
  EXPECT_THAT(w1.membership.workers(), ElementsAre(w0.self, w1.self));
  EXPECT_THAT(joined, ElementsAre("w0", "w1"));
  EXPECT_EQ(w0.membership.num_events(), 2u);
}

TEST_F(PeerMembershipTest, StaticGroupStartsWhenAllKnowEachOther) {
  Member& w0 = AddMember(Worker(0, 100), {.world_size = 2, .waits = true});
  Member& w1 = AddMember(Worker(1, 101), {.world_size = 2, .waits = true});
  const auto join = [](Member& member) {
    EXPECT_THAT(member.membership.JoinGroup(), IsOk());
    EXPECT_THAT(member.membership.Join(), IsOk());
    EXPECT_THAT(member.membership.workers(), SizeIs(2));
  };
  std::thread other([&] { join(w1); });
  join(w0);
  other.join();
  EXPECT_THAT(w0.membership.workers(), ElementsAre(w0.self, w1.self));
}

TEST_F(PeerMembershipTest, StaticGroupNamesTheRanksThatAreMissing) {
  Member& w0 =
      AddMember(Worker(0, 100), {.world_size = 2,
                                 .start_timeout = absl::Milliseconds(10),
                                 .waits = true});
  ASSERT_THAT(w0.membership.JoinGroup(), IsOk());
  EXPECT_THAT(w0.membership.Join(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("did not start in time: 1")));
}

TEST_F(PeerMembershipTest, JoiningOutlastsAStoreThatDoesNotReply) {
  // The number of calls on the way to the store, or back, that fail next.
  int failures = 0;
  Member* joining = nullptr;
  Member& w0 = AddMember(Worker(0, 100), {.on_way = [&] {
                           if (joining == nullptr) return;
                           joining->link.SetPartitioned(failures-- > 0);
                         }});
  ASSERT_THAT(w0.membership.JoinGroup(), IsOk());
  joining = &w0;
  failures = 3;
  EXPECT_THAT(w0.membership.Join(), IsOk());
  EXPECT_LE(failures, 0);
  EXPECT_THAT(records_.FindByName("w0"), IsOkAndHolds(Optional(w0.self)));
  joining = nullptr;
}

TEST_F(PeerMembershipTest, JoiningEndsAtTheStartTimeoutWithoutAStore) {
  Member& w0 =
      AddMember(Worker(0, 100), {.start_timeout = absl::Milliseconds(10)});
  ASSERT_THAT(w0.membership.JoinGroup(), IsOk());
  w0.link.SetPartitioned(true);
  EXPECT_THAT(w0.membership.Join(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(w0.membership.joined());
}

TEST_F(PeerMembershipTest, MembersAgreeOnTheKindOfGroup) {
  JoinAs(0);
  Member& w1 = AddMember(Worker(1, 101), {.world_size = 2});
  EXPECT_THAT(w1.membership.JoinGroup(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PeerMembershipTest, NameOfALiveMemberCannotBeClaimed) {
  Member& w0 = JoinAs(0);
  Member& rival =
      AddMember(Worker(0, 7), {.start_timeout = absl::ZeroDuration()});
  ASSERT_THAT(rival.membership.JoinGroup(), IsOk());
  EXPECT_THAT(rival.membership.Join(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'w0'")));
  EXPECT_FALSE(rival.membership.joined());
  // It leaves nothing behind.
  EXPECT_THAT(log_.ReadLease(Incarnation{7}), IsOkAndHolds(""));
  Advance(absl::Seconds(1));
  EXPECT_THAT(w0.membership.workers(), ElementsAre(w0.self));
  EXPECT_THAT(Departures(), IsEmpty());
}

// Another worker replies at the address of the previous one.
TEST_F(PeerMembershipTest, RestartedWorkerReplacesItsPredecessor) {
  Member& w0 = JoinAs(0);
  Member& old = JoinAs(1);
  Advance(absl::Seconds(1));
  old.membership.Stop();
  Member& restarted = AddMember(Worker(1, 7));
  restarted.control.EndPings(absl::FailedPreconditionError("restarted"));
  ASSERT_THAT(restarted.membership.JoinGroup(), IsOk());
  ASSERT_THAT(restarted.membership.Join(), IsOk());
  Advance(absl::Seconds(1));
  EXPECT_THAT(w0.membership.workers(), ElementsAre(w0.self, restarted.self));
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, old.self);
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("was replaced by worker 'w1'")));
}

// --- Losses.

TEST_F(PeerMembershipTest, PeerThatAnswersIsKept) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  Advance(absl::Seconds(20));
  EXPECT_THAT(w0.losses, IsEmpty());
  EXPECT_THAT(w1.losses, IsEmpty());
  EXPECT_EQ(w0.membership.num_lost(), 0u);
  EXPECT_FALSE(w0.membership.WhenPeerLost().ready());
}

TEST_F(PeerMembershipTest, PeerWhoseHeartbeatsFailIsReportedOnce) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Member& w2 = JoinAs(2);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  w0.ping_outcomes["w1"] = absl::UnavailableError("connection refused");
  Advance(absl::Milliseconds(1300));
  EXPECT_THAT(w0.losses, IsEmpty());
  Advance(absl::Milliseconds(700));
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'w1'"), HasSubstr("out of reach"),
                             HasSubstr("connection refused"))));
  EXPECT_THAT(GetErrorDetail(w0.losses[0].status),
              Optional(LossDetail(w1.self)));
  EXPECT_TRUE(PeerOf(w0, w1)->lost());
  EXPECT_TRUE(w0.membership.IsLost(w1.self));
  EXPECT_EQ(w0.membership.num_lost(), 1u);
  const async::Future<void> lost = w0.membership.WhenPeerLost();
  ASSERT_TRUE(lost.ready());
  EXPECT_THAT(lost.result(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_TRUE(GetErrorDetail(lost.result()).has_value());
  // The others learn of it, and the event is no second loss.
  Advance(absl::Seconds(1));
  EXPECT_THAT(Departures(), ElementsAre("lost w1 by w0"));
  ASSERT_THAT(w2.losses, SizeIs(1));
  EXPECT_EQ(w2.losses[0].worker, w1.self);
  EXPECT_THAT(w2.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("was found lost by worker 'w0'")));
  EXPECT_TRUE(w0.membership.HasDeparted(w1.self.incarnation));
  EXPECT_THAT(w0.losses, SizeIs(1));
}

TEST_F(PeerMembershipTest, MemberWhoseLeaseStallsIsLost) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  // Nobody watches it.
  w1.membership.Stop();
  Advance(absl::Seconds(5));
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lease")));
  EXPECT_THAT(GetErrorDetail(w0.losses[0].status),
              Optional(LossDetail(w1.self)));
}

TEST_F(PeerMembershipTest, FencedWorkerLosesAllItsPeers) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Member& w2 = JoinAs(2);
  Advance(absl::Seconds(1));
  ASSERT_THAT(log_.Append(LostEvent(w1.self.incarnation, w0.self.incarnation,
                                    "was too slow")),
              IsOk());
  Advance(absl::Seconds(1));
  EXPECT_EQ(w1.num_fenced, 1);
  EXPECT_TRUE(w1.fenced_at_report);
  EXPECT_TRUE(w1.state->fenced());
  ASSERT_THAT(w1.losses, SizeIs(2));
  EXPECT_EQ(w1.losses[0].worker, w0.self);
  EXPECT_EQ(w1.losses[1].worker, w2.self);
  for (const Member::Loss& loss : w1.losses) {
    EXPECT_THAT(loss.status,
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("'w1'"), HasSubstr("must restart"),
                               HasSubstr("was too slow"))));
    EXPECT_THAT(GetErrorDetail(loss.status), Optional(LossDetail(loss.worker)));
  }
  EXPECT_FALSE(w1.membership.IsLost(w1.self));
  // The others go on without it.
  EXPECT_EQ(w0.num_fenced, 0);
  EXPECT_FALSE(w0.state->fenced());
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
  EXPECT_THAT(Departures(), ElementsAre("lost w1 by w0"));
}

// The log says which of the two was declared lost.
TEST_F(PeerMembershipTest, RejectedHeartbeatCatchesUpWithTheLogFirst) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  absl::Status rejection = absl::FailedPreconditionError("declared lost");
  SetErrorDetail({.worker = "w1", .incarnation = w1.self.incarnation},
                 rejection);
  clock_.AdvanceBy(absl::Milliseconds(500));
  executor_.RunAll();
  auto ping = w0.control.TakePing();
  ASSERT_NE(ping, std::nullopt);
  ASSERT_THAT(log_.Append(LostEvent(w0.self.incarnation, w1.self.incarnation,
                                    "was too slow")),
              IsOk());
  std::move(ping->done)(rejection);
  EXPECT_THAT(w0.losses, IsEmpty());
  executor_.RunAll();
  EXPECT_EQ(w0.num_fenced, 1);
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Departures(), ElementsAre("lost w0 by w1"));
}

TEST_F(PeerMembershipTest, RejectedHeartbeatCountsIfTheLogCannotBeRead) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  clock_.AdvanceBy(absl::Milliseconds(500));
  executor_.RunAll();
  auto ping = w0.control.TakePing();
  ASSERT_NE(ping, std::nullopt);
  w0.link.SetPartitioned(true);
  absl::Status rejection = absl::FailedPreconditionError("declared lost");
  SetErrorDetail({.worker = "w1", .incarnation = w1.self.incarnation},
                 rejection);
  std::move(ping->done)(rejection);
  EXPECT_THAT(w0.losses, IsEmpty());
  executor_.RunAll();
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is gone")));
}

TEST_F(PeerMembershipTest, RejectionByAnotherIncarnationCountsAtOnce) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  clock_.AdvanceBy(absl::Milliseconds(500));
  executor_.RunAll();
  auto ping = w0.control.TakePing();
  ASSERT_NE(ping, std::nullopt);
  absl::Status rejection = absl::FailedPreconditionError("another worker");
  SetErrorDetail({.worker = "w1", .incarnation = Incarnation{7}}, rejection);
  std::move(ping->done)(rejection);
  // No round was needed.
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
}

TEST_F(PeerMembershipTest, LossBeforeThisWorkerJoinedIsNotReported) {
  JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  w1.membership.Stop();
  ASSERT_THAT(log_.Append(LeftEvent(w1.self.incarnation)), IsOk());
  Member& w2 = JoinAs(2);
  Advance(absl::Seconds(1));
  EXPECT_THAT(w2.losses, IsEmpty());
  EXPECT_TRUE(w2.membership.HasDeparted(w1.self.incarnation));
  EXPECT_TRUE(w2.membership.IsLost(w1.self));
}

// --- Monitoring.

TEST_F(PeerMembershipTest, PeerIsWatchedOnceAndThisWorkerIsNot) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  Watch(w0, w1);
  Watch(w0, w0);
  clock_.AdvanceBy(absl::Milliseconds(500));
  ASSERT_EQ(w0.control.num_pings(), 1u);
  const auto ping = w0.control.TakePing();
  EXPECT_EQ(ping->peer, PeerOf(w0, w1));
  EXPECT_EQ(ping->deadline, async::AddDelay(clock_.Now(), absl::Seconds(1)));
  w0.membership.StopMonitoring();
  clock_.AdvanceBy(absl::Seconds(5));
  EXPECT_EQ(w0.control.num_pings(), 0u);
}

// Their leases show whether they live.
TEST_F(PeerMembershipTest, MembersThatDoNotTalkGetNoHeartbeats) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Member& w2 = JoinAs(2);
  Advance(absl::Seconds(1));
  EXPECT_THAT(w0.membership.Members(), ElementsAre(w0.self, w1.self, w2.self));
  clock_.AdvanceBy(absl::Seconds(5));
  EXPECT_EQ(w0.control.num_pings(), 0u);
}

TEST_F(PeerMembershipTest, SenderOfAMessageIsHeardAndWatched) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  const std::shared_ptr<Peer> peer = PeerOf(w0, w1);
  EXPECT_FALSE(peer->watched());
  w0.membership.OnMessage(peer);
  EXPECT_TRUE(peer->watched());
  clock_.AdvanceBy(absl::Milliseconds(300));
  w0.membership.OnMessage(peer);
  EXPECT_EQ(peer->last_heard(), clock_.Now());
  // It needs no heartbeat until it is silent for an interval.
  clock_.AdvanceBy(absl::Milliseconds(200));
  EXPECT_EQ(w0.control.num_pings(), 0u);
  clock_.AdvanceBy(absl::Milliseconds(500));
  EXPECT_EQ(w0.control.num_pings(), 1u);
}

TEST_F(PeerMembershipTest, UnknownSenderThatIsAMemberIsWatched) {
  Member& w0 = JoinAs(0);
  Member& w1 = AddMember(1);
  ASSERT_THAT(w1.membership.JoinGroup(), IsOk());
  ASSERT_THAT(w1.membership.Join(), IsOk());
  // Its event was not read yet.
  EXPECT_THAT(PeerOf(w0, w1), IsNull());
  absl::Status confirmed = absl::UnknownError("");
  w0.membership.Confirm(w1.self,
                        [&](absl::Status status) { confirmed = status; });
  executor_.RunAll();
  EXPECT_THAT(confirmed, IsOk());
  ASSERT_THAT(PeerOf(w0, w1), NotNull());
  EXPECT_TRUE(PeerOf(w0, w1)->watched());
}

TEST_F(PeerMembershipTest, FindsWorkersThatTheLogHasNotAnnouncedYet) {
  Member& w0 = JoinAs(0);
  Member& w1 = AddMember(1);
  ASSERT_THAT(w1.membership.JoinGroup(), IsOk());
  ASSERT_THAT(w1.membership.Join(), IsOk());
  const auto found = w0.membership.FindPeer("w1", async::kNever);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ((*found)->info(), w1.self);
  EXPECT_FALSE((*found)->watched());
  EXPECT_THAT(w0.membership.FindPeer("w9", async::kNever),
              StatusIs(absl::StatusCode::kNotFound));
}

// A call to a lost worker does not wait for a store that is out of reach.
TEST_F(PeerMembershipTest, StoreOutOfReachIsNotAskedForRestarts) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  ASSERT_THAT(w1.membership.WithdrawAsLost(), IsOk());
  w1.membership.Stop();
  Advance(absl::Seconds(1));
  const std::shared_ptr<Peer> lost = PeerOf(w0, w1);
  ASSERT_THAT(lost, NotNull());
  w0.link.SetPartitioned(true);
  Advance(absl::Seconds(1));
  EXPECT_FALSE(w0.membership.store_reachable());
  // The link is back, which the next round will find.
  w0.link.SetPartitioned(false);
  ASSERT_THAT(records_.Register(Worker(1, 7), {}), IsOk());
  EXPECT_THAT(w0.membership.FindPeer("w1", async::kNever), IsOkAndHolds(lost));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(w0.membership.store_reachable());
  const auto restarted = w0.membership.FindPeer("w1", async::kNever);
  ASSERT_THAT(restarted, IsOk());
  EXPECT_EQ((*restarted)->info().incarnation, Incarnation{7});
}

TEST_F(PeerMembershipTest, StalledWorkerMayBeFencedUntilItReadsTheLog) {
  StallingClock stalling(&clock_);
  Member& w0 = AddMember(Worker(0, 100), {.clock = &stalling});
  ASSERT_THAT(w0.membership.JoinGroup(), IsOk());
  ASSERT_THAT(w0.membership.Join(), IsOk());
  executor_.RunAll();
  EXPECT_FALSE(w0.membership.MaybeFenced());
  stalling.Stall(absl::Seconds(3));
  EXPECT_TRUE(w0.membership.MaybeFenced());
  // It runs again, and has not read the log yet.
  clock_.AdvanceBy(absl::Milliseconds(500));
  EXPECT_TRUE(w0.membership.MaybeFenced());
  executor_.RunAll();
  EXPECT_FALSE(w0.membership.MaybeFenced());
  members_.clear();
}

// --- Leaving.

TEST_F(PeerMembershipTest, LeaveNoticeEndsWhenTheCallsToItsSenderHaveEnded) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  const std::shared_ptr<Peer> peer = PeerOf(w0, w1);
  peer->BeginCall();
  const async::Future<void> idle = w0.membership.OnLeaveNotice(w1.self);
  EXPECT_TRUE(peer->left());
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_EQ(w0.losses[0].worker, w1.self);
  EXPECT_THAT(w0.losses[0].status, StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("left the job")));
  EXPECT_THAT(GetErrorDetail(w0.losses[0].status),
              Optional(LossDetail(w1.self)));
  EXPECT_FALSE(idle.ready());
  peer->EndCall();
  ASSERT_TRUE(idle.ready());
  EXPECT_THAT(idle.result(), IsOk());
  // It is no failure of the job, and its event is no second departure.
  EXPECT_FALSE(w0.membership.WhenPeerLost().ready());
  EXPECT_FALSE(w0.membership.HasDeparted(w1.self.incarnation));
  ASSERT_THAT(w1.membership.Withdraw(), IsOk());
  w1.membership.Stop();
  Advance(absl::Seconds(1));
  EXPECT_TRUE(w0.membership.HasDeparted(w1.self.incarnation));
  EXPECT_THAT(w0.losses, SizeIs(1));
}

TEST_F(PeerMembershipTest, LeaveNoticeOfAnUnknownWorkerEndsAtOnce) {
  Member& w0 = JoinAs(0);
  const async::Future<void> idle = w0.membership.OnLeaveNotice(Worker(9, 9));
  ASSERT_TRUE(idle.ready());
  EXPECT_THAT(idle.result(), IsOk());
  EXPECT_THAT(w0.losses, IsEmpty());
  EXPECT_EQ(w0.membership.num_lost(), 0u);
}

// Its heartbeats go on until it has ended; its silence is then no news.
TEST_F(PeerMembershipTest, PeerThatLeftIsNotDeclaredLost) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  const std::shared_ptr<Peer> peer = PeerOf(w0, w1);
  ASSERT_THAT(peer->connection(), IsOk());
  EXPECT_TRUE(w0.membership.OnLeaveNotice(w1.self).ready());
  w0.ping_outcomes["w1"] = absl::UnavailableError("connection refused");
  Advance(absl::Milliseconds(2000));
  EXPECT_THAT(w0.losses, SizeIs(1));
  EXPECT_THAT(Departures(), IsEmpty());
  // Its connection is dropped.
  EXPECT_THAT(peer->heartbeat_connection(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PeerMembershipTest, NoticeGoesToWatchedLivePeers) {
  Member& w0 = JoinAs(0);
  Member& watched = JoinAs(1);
  JoinAs(2);
  Member& lost = JoinAs(3);
  Advance(absl::Seconds(1));
  Watch(w0, w0);
  Watch(w0, watched);
  Watch(w0, lost);
  ASSERT_THAT(lost.membership.WithdrawAsLost(), IsOk());
  lost.membership.Stop();
  Advance(absl::Seconds(1));
  const async::Future<void> notified = w0.membership.NotifyPeers(
      async::AddDelay(clock_.Now(), absl::Seconds(1)));
  ASSERT_EQ(w0.control.num_leave_notices(), 1u);
  auto notice = w0.control.TakeLeaveNotice();
  EXPECT_EQ(notice->peer, PeerOf(w0, watched));
  EXPECT_EQ(notice->deadline, async::AddDelay(clock_.Now(), absl::Seconds(1)));
  EXPECT_FALSE(notified.ready());
  std::move(notice->done)(absl::OkStatus());
  ASSERT_TRUE(notified.ready());
  EXPECT_THAT(notified.result(), IsOk());
}

TEST_F(PeerMembershipTest, NoticeDoesNotWaitBeyondTheSilentLimit) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  const async::Future<void> notified = w0.membership.NotifyPeers(async::kNever);
  const auto notice = w0.control.TakeLeaveNotice();
  ASSERT_NE(notice, std::nullopt);
  EXPECT_EQ(notice->deadline, async::AddDelay(clock_.Now(), absl::Seconds(3)));
}

TEST_F(PeerMembershipTest, WithdrawalFreesTheName) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  EXPECT_THAT(log_.ReadLease(w1.self.incarnation), IsOkAndHolds(Not("")));
  ASSERT_THAT(w1.membership.Withdraw(), IsOk());
  w1.membership.StopMembership();
  EXPECT_THAT(records_.FindByName("w1"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(records_.FindById(WorkerId(1)), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(log_.ReadLease(w1.self.incarnation), IsOkAndHolds(""));
  EXPECT_THAT(Departures(), ElementsAre("left w1"));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(PeerOf(w0, w1)->left());
  EXPECT_FALSE(w0.membership.WhenPeerLost().ready());
  EXPECT_TRUE(w0.membership.WhenAlone().ready());
}

TEST_F(PeerMembershipTest, WithdrawalAsLostIsALossForThePeers) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  ASSERT_THAT(w1.membership.WithdrawAsLost(), IsOk());
  w1.membership.Stop();
  EXPECT_THAT(records_.FindByName("w1"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(Departures(), ElementsAre("lost w1 by w1"));
  Advance(absl::Seconds(1));
  ASSERT_THAT(w0.losses, SizeIs(1));
  EXPECT_THAT(w0.losses[0].status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("stopped without leaving the job")));
  ASSERT_TRUE(w0.membership.WhenPeerLost().ready());
  const absl::Status lost = w0.membership.WhenPeerLost().result();
  EXPECT_THAT(lost, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(GetErrorDetail(lost)->incarnation, w1.self.incarnation);
}

TEST_F(PeerMembershipTest, FuturesOfTheLeaveCompleteWithTheDepartures) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Member& w2 = JoinAs(2);
  Advance(absl::Seconds(1));
  const async::Future<void> lost = w0.membership.WhenPeerLost();
  const async::Future<void> alone = w0.membership.WhenAlone();
  ASSERT_THAT(w1.membership.Withdraw(), IsOk());
  Advance(absl::Seconds(1));
  EXPECT_FALSE(lost.ready());
  EXPECT_FALSE(alone.ready());
  ASSERT_THAT(w2.membership.WithdrawAsLost(), IsOk());
  Advance(absl::Seconds(1));
  ASSERT_TRUE(lost.ready());
  EXPECT_EQ(GetErrorDetail(lost.result())->incarnation, w2.self.incarnation);
  EXPECT_TRUE(alone.ready());
}

TEST_F(PeerMembershipTest, DeparturesAreNotReportedToAWorkerThatEnds) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  w0.membership.StopReporting();
  ASSERT_THAT(w1.membership.Withdraw(), IsOk());
  Advance(absl::Seconds(1));
  EXPECT_TRUE(PeerOf(w0, w1)->left());
  EXPECT_THAT(w0.losses, IsEmpty());
}

TEST_F(PeerMembershipTest, WithdrawalFailsWithoutTheStore) {
  Member& w0 = JoinAs(0);
  w0.link.SetPartitioned(true);
  EXPECT_THAT(w0.membership.Withdraw(),
              StatusIs(absl::StatusCode::kUnavailable));
  w0.link.SetPartitioned(false);
  EXPECT_THAT(records_.FindByName("w0"), IsOkAndHolds(Optional(w0.self)));
  EXPECT_THAT(Departures(), IsEmpty());
}

TEST_F(PeerMembershipTest, StoppedMembershipReportsNothing) {
  Member& w0 = JoinAs(0);
  Member& w1 = JoinAs(1);
  Advance(absl::Seconds(1));
  Watch(w0, w1);
  int events = 0;
  w0.membership.WatchMembers([&](const MemberEvent&) { ++events; });
  w0.membership.Stop();
  w0.membership.Stop();
  ASSERT_THAT(w1.membership.Withdraw(), IsOk());
  w1.membership.Stop();
  Advance(absl::Seconds(5));
  EXPECT_THAT(w0.losses, IsEmpty());
  EXPECT_EQ(events, 0);
  EXPECT_EQ(w0.control.num_pings(), 0u);
}

}  // namespace
}  // namespace hawser::rpc
