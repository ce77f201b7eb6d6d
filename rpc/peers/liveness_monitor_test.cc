#include "rpc/peers/liveness_monitor.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/inproc/network.h"
#include "rpc/peers/peer.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Peers whose replies to heartbeats a test controls.
class LivenessMonitorTest : public testing::Test {
 protected:
  enum class Answer { kOk, kNone, kUnreachable, kReplaced };

  std::shared_ptr<Peer> AddPeer(const std::string& name) {
    auto peer = std::make_shared<Peer>(
        WorkerInfo{name, WorkerId(1), Incarnation{1}, ""}, "", nullptr);
    monitor_.Watch(peer);
    return peer;
  }

  void Ping(const std::shared_ptr<Peer>& peer,
            absl::AnyInvocable<void(absl::Status) &&> done) {
    ++pings_;
    switch (answers_[peer->info().name]) {
      case Answer::kOk:
        std::move(done)(absl::OkStatus());
        break;
      case Answer::kNone:
        unanswered_.push_back(std::move(done));
        break;
      case Answer::kUnreachable:
        std::move(done)(absl::UnavailableError("connection refused"));
        break;
      case Answer::kReplaced:
        std::move(done)(absl::FailedPreconditionError("another incarnation"));
        break;
    }
  }

  // Peers that do not reply are cut off, unless their machine accepts. Probes
  // listed in `lost_probes_` get no reply.
  void Probe(const std::shared_ptr<Peer>& peer,
             absl::AnyInvocable<void(absl::Status) &&> done) {
    ++probes_;
    if (lost_probes_.contains(probes_)) {
      std::move(done)(absl::DeadlineExceededError("no reply in time"));
      return;
    }
    const std::string& name = peer->info().name;
    const bool accepts = answers_[name] == Answer::kOk ||
                         answers_[name] == Answer::kReplaced ||
                         accepting_.contains(name);
    std::move(done)(accepts ? absl::OkStatus()
                            : absl::UnavailableError("no connection"));
  }

  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  std::set<std::string> accepting_;
  int probes_ = 0;
  // Counted from 1.
  std::set<int> lost_probes_;
  std::map<std::string, Answer> answers_;
  int pings_ = 0;
  // Deadline of the last ping.
  async::MonotonicTime deadline_;
  std::vector<absl::AnyInvocable<void(absl::Status) &&>> unanswered_;
  std::map<std::string, absl::Status> lost_;
  LivenessMonitor monitor_{
      LivenessOptions(), &clock_,
      [this](const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
             absl::AnyInvocable<void(absl::Status) &&> done) {
        deadline_ = deadline;
        Ping(peer, std::move(done));
      },
      [this](const std::shared_ptr<Peer>& peer, absl::Duration,
             absl::AnyInvocable<void(absl::Status) &&> done) {
        Probe(peer, std::move(done));
      },
      [this](const std::shared_ptr<Peer>& peer, absl::Status status) {
        lost_[peer->info().name] = std::move(status);
      }};
};

TEST_F(LivenessMonitorTest, PeerWithACallInFlightIsAskedInEveryInterval) {
  AddPeer("a")->counters()->AddRequest(1);
  clock_.AdvanceBy(absl::Seconds(60));
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_GE(pings_, 119);
}

TEST_F(LivenessMonitorTest, IdlePairBacksOff) {
  const std::shared_ptr<Peer> peer = AddPeer("a");
  clock_.AdvanceBy(absl::Seconds(60));
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_LE(pings_, 15);
  pings_ = 0;
  clock_.AdvanceBy(absl::Minutes(10));
  EXPECT_LE(pings_, 20);
  EXPECT_GE(pings_, 18);
  // A request in either direction ends that.
  peer->counters()->AddServed(1);
  pings_ = 0;
  clock_.AdvanceBy(absl::Seconds(2));
  EXPECT_GE(pings_, 2);
}

TEST_F(LivenessMonitorTest, IdlePeerThatDiedIsLostSoonAfterTheNextCall) {
  const std::shared_ptr<Peer> peer = AddPeer("a");
  AddPeer("b");
  clock_.AdvanceBy(absl::Minutes(10));
  answers_["a"] = Answer::kNone;
  answers_["b"] = Answer::kNone;
  peer->counters()->AddRequest(1);
  clock_.AdvanceBy(absl::Milliseconds(2400));
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(1100));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("no heartbeat reply for 3s")));
  // The other one after its next heartbeat.
  clock_.AdvanceBy(absl::Seconds(30));
  EXPECT_TRUE(lost_.contains("b"));
}

TEST_F(LivenessMonitorTest, PeerThatSendsMessagesIsNotPinged) {
  std::shared_ptr<Peer> peer = AddPeer("a");
  for (int i = 0; i < 100; ++i) {
    clock_.AdvanceBy(absl::Milliseconds(100));
    peer->SetHeard(clock_.Now());
  }
  EXPECT_EQ(pings_, 0);
}

TEST_F(LivenessMonitorTest, SilentPeerIsLostAfterThreeSeconds) {
  answers_["a"] = Answer::kNone;
  AddPeer("a");
  AddPeer("b");
  clock_.AdvanceBy(absl::Milliseconds(2900));
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(100));
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   AllOf(HasSubstr("'a'"), HasSubstr("3s"))));
}

// Such as a peer on a machine with more work than processors.
TEST_F(LivenessMonitorTest, SilentPeerIsNotLostWhileItsMachineAccepts) {
  answers_["a"] = Answer::kNone;
  accepting_.insert("a");
  AddPeer("a");
  clock_.AdvanceBy(absl::Seconds(8));
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_GT(probes_, 0);
  // It gets processor time again.
  answers_["a"] = Answer::kOk;
  for (auto& done : std::exchange(unanswered_, {})) {
    std::move(done)(absl::OkStatus());
  }
  clock_.AdvanceBy(absl::Seconds(1));
  // And is cut off.
  answers_["a"] = Answer::kNone;
  accepting_.clear();
  clock_.AdvanceBy(absl::Seconds(12));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("no heartbeat reply for 3")));
}

// Such as a peer whose connection waits for its next retransmission.
TEST_F(LivenessMonitorTest, OneOfThreeProbesIsEnough) {
  answers_["a"] = Answer::kNone;
  accepting_.insert("a");
  lost_probes_ = {1, 2, 4, 5, 7, 8, 9};
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(5900));
  EXPECT_EQ(probes_, 9);
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(100));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("no heartbeat reply for 6s")));
}

TEST_F(LivenessMonitorTest, PeerWhoseMachineDoesNotReplyIsLost) {
  answers_["a"] = Answer::kNone;
  lost_probes_ = {1, 2, 3, 4};
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(2900));
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(100));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("no heartbeat reply for 3s")));
}

TEST_F(LivenessMonitorTest, SilentPeerIsLostInTheEnd) {
  answers_["a"] = Answer::kNone;
  accepting_.insert("a");
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(8900));
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(100));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("no heartbeat reply for 9s")));
}

TEST_F(LivenessMonitorTest, FailedConnectionsToAnAcceptingMachineAreNoLoss) {
  answers_["a"] = Answer::kUnreachable;
  accepting_.insert("a");
  AddPeer("a");
  clock_.AdvanceBy(absl::Seconds(8));
  EXPECT_THAT(lost_, IsEmpty());
  accepting_.clear();
  clock_.AdvanceBy(absl::Milliseconds(500));
  EXPECT_THAT(lost_["a"],
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("out of reach: connection refused")));
}

TEST_F(LivenessMonitorTest, UnreachablePeerIsLostSooner) {
  answers_["a"] = Answer::kUnreachable;
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(1400));
  EXPECT_THAT(lost_, IsEmpty());
  clock_.AdvanceBy(absl::Milliseconds(100));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("connection refused")));
}

TEST_F(LivenessMonitorTest, ReplacedPeerIsLostAtOnce) {
  answers_["a"] = Answer::kReplaced;
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(500));
  EXPECT_EQ(lost_.size(), 1u);
}

TEST_F(LivenessMonitorTest, ShortInterruptionIsForgiven) {
  AddPeer("a");
  for (int i = 0; i < 10; ++i) {
    answers_["a"] = Answer::kUnreachable;
    clock_.AdvanceBy(absl::Milliseconds(1000));
    answers_["a"] = Answer::kOk;
    clock_.AdvanceBy(absl::Milliseconds(1000));
  }
  EXPECT_THAT(lost_, IsEmpty());
}

// Its requests arrive, but messages to it are lost.
TEST_F(LivenessMonitorTest, PeerThatIsCalledMustReply) {
  InprocNetwork network({.executor = &executor_, .clock = &clock_});
  const std::unique_ptr<Transport> transport = network.NewTransport();
  answers_["a"] = Answer::kNone;
  auto peer = std::make_shared<Peer>(
      WorkerInfo{"a", WorkerId(1), Incarnation{1}, "inproc:2"}, "",
      transport.get());
  monitor_.Watch(peer);
  const auto speak = [&](absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock_.AdvanceBy(absl::Milliseconds(100));
      peer->SetHeard(clock_.Now());
      peer->counters()->AddServed(1);
    }
  };
  speak(absl::Seconds(10));
  EXPECT_THAT(lost_, IsEmpty());
  ASSERT_THAT(peer->connection(), IsOk());
  // Its earlier messages count, and the limit is longer than that of silence.
  speak(absl::Milliseconds(8500));
  EXPECT_THAT(lost_, IsEmpty());
  speak(absl::Seconds(1));
  EXPECT_THAT(lost_["a"], StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("has not replied to any")));
}

TEST_F(LivenessMonitorTest, OneLostHeartbeatIsForgiven) {
  answers_["a"] = Answer::kNone;
  AddPeer("a");
  clock_.AdvanceBy(absl::Milliseconds(500));
  ASSERT_EQ(unanswered_.size(), 1u);
  const absl::Duration wait = async::TimeBetween(clock_.Now(), deadline_);
  EXPECT_EQ(wait, absl::Seconds(1));
  answers_["a"] = Answer::kOk;
  clock_.AdvanceBy(wait);
  std::move(unanswered_[0])(absl::DeadlineExceededError("lost"));
  clock_.AdvanceBy(absl::Seconds(60));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(LivenessMonitorTest, LossIsReportedOnce) {
  answers_["a"] = Answer::kNone;
  AddPeer("a");
  clock_.AdvanceBy(absl::Seconds(3));
  ASSERT_EQ(lost_.size(), 1u);
  lost_.clear();
  for (auto& done : unanswered_) {
    std::move(done)(absl::FailedPreconditionError("late"));
  }
  clock_.AdvanceBy(absl::Seconds(10));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(LivenessMonitorTest, NothingRunsAfterStop) {
  answers_["a"] = Answer::kNone;
  AddPeer("a");
  clock_.AdvanceBy(absl::Seconds(1));
  monitor_.Stop();
  for (auto& done : unanswered_) {
    std::move(done)(absl::FailedPreconditionError("late"));
  }
  clock_.AdvanceBy(absl::Seconds(10));
  EXPECT_THAT(lost_, IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
