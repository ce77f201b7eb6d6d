#include "rpc/agent/members/peer_directory.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_transport.h"
#include "rpc/testing/simulated_store_link.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::Optional;
using ::testing::SizeIs;
using Marking = PeerDirectory::Marking;

WorkerInfo Worker(int rank, uint64_t incarnation) {
  return {.name = "w" + std::to_string(rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{incarnation},
          .address = "host" + std::to_string(rank) + ":1"};
}

class PeerDirectoryTest : public testing::Test {
 protected:
  // Puts the record of `worker` into the store, which frees those of an
  // earlier one with its name.
  void Record(const WorkerInfo& worker,
              std::optional<WorkerInfo> earlier = std::nullopt) {
    if (earlier.has_value()) {
      ASSERT_THAT(others_.Withdraw(*earlier), IsOk());
    }
    ASSERT_THAT(others_.Register(worker, {}), IsOk());
  }

  absl::StatusOr<std::shared_ptr<Peer>> Find(const Destination& to,
                                             bool store_reachable = true) {
    return directory_.Find(to, async::AddDelay(clock_.Now(), absl::Seconds(9)),
                           store_reachable);
  }
  absl::StatusOr<std::shared_ptr<Peer>> FindBy(absl::Duration timeout) {
    return directory_.Find("w1", async::AddDelay(clock_.Now(), timeout),
                           /*store_reachable=*/true);
  }

  // Confirms a sender, and adds the result to `confirmed_`.
  void Confirm(const WorkerInfo& worker) {
    directory_.Confirm(worker,
                       [this](absl::StatusOr<std::shared_ptr<Peer>> peer) {
                         confirmed_.push_back(std::move(peer));
                       });
  }

  static ErrorDetail Detail(const WorkerInfo& worker) {
    return {.worker = worker.name, .incarnation = worker.incarnation};
  }

  const absl::Status lost_ = absl::UnavailableError("it was lost");
  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  async::ManualExecutor control_executor_;
  store::HashStore store_{{.clock = &clock_}};
  // Counts the messages of the link to and from the store.
  int num_messages_ = 0;
  SimulatedStoreLink link_{&store_, {.on_way = [this] { ++num_messages_; }}};
  // The views of other workers, and of this one.
  WorkerDirectory others_{&store_, "job"};
  WorkerDirectory records_{&link_, "job"};
  FakeTransport transport_;
  const std::shared_ptr<AgentState> state_ = std::make_shared<AgentState>(
      AgentState::Options{.self = Worker(0, 100),
                          .job = "job",
                          .clock = &clock_,
                          .executor = &executor_,
                          .control_executor = &control_executor_});
  PeerDirectory directory_{state_, &records_, &transport_};
  std::vector<absl::StatusOr<std::shared_ptr<Peer>>> confirmed_;
};

// --- Peers in memory.

TEST_F(PeerDirectoryTest, RequestsToAPeerNameBothWorkers) {
  const std::shared_ptr<Peer> peer = directory_.MakePeer(Worker(1, 8));
  EXPECT_EQ(peer->info(), Worker(1, 8));
  TransferCounters counters;
  const auto payload = EncodeMessage({.header = peer->header()}, counters);
  ASSERT_THAT(payload, IsOk());
  const auto message = IncomingMessage::Parse(*payload);
  ASSERT_THAT(message, IsOk());
  const auto header = message->ParseRequestHeader();
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->job, "job");
  EXPECT_EQ(header->source, "w0");
  EXPECT_EQ(header->source_rank, WorkerId(0));
  EXPECT_EQ(header->source_incarnation, Incarnation{100});
  EXPECT_EQ(header->destination, "w1");
  EXPECT_EQ(header->destination_incarnation, Incarnation{8});
  EXPECT_THAT(directory_.All(), IsEmpty());
}

TEST_F(PeerDirectoryTest, EachIncarnationHasOnePeer) {
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  EXPECT_EQ(directory_.Add(Worker(1, 8)), peer);
  EXPECT_EQ(directory_.FindByIncarnation(Incarnation{8}), peer);
  EXPECT_THAT(directory_.FindByIncarnation(Incarnation{9}), IsNull());
  const std::shared_ptr<Peer> first = directory_.Add(Worker(0, 100));
  EXPECT_THAT(directory_.All(), ElementsAre(first, peer));
}

TEST_F(PeerDirectoryTest, KnownPeerIsFoundWithoutTheStore) {
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  EXPECT_THAT(Find("w1"), IsOkAndHolds(peer));
  EXPECT_THAT(Find(WorkerId(1)), IsOkAndHolds(peer));
  EXPECT_THAT(Find(Worker(1, 8)), IsOkAndHolds(peer));
  EXPECT_EQ(num_messages_, 0);
}

TEST_F(PeerDirectoryTest, PeerAddedAfterItsDepartureIsLost) {
  directory_.MarkLost(directory_.MakePeer(Worker(1, 8)), lost_);
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  EXPECT_TRUE(peer->lost());
  EXPECT_THAT(peer->connection(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
}

TEST_F(PeerDirectoryTest, AnnouncedWorkerIsKnownUnlessItIsLost) {
  directory_.Announce(Worker(1, 8));
  directory_.MarkLost(directory_.MakePeer(Worker(2, 9)), lost_);
  directory_.Announce(Worker(2, 9));
  ASSERT_THAT(directory_.All(), SizeIs(1));
  EXPECT_EQ(directory_.All()[0]->info(), Worker(1, 8));
  EXPECT_FALSE(directory_.All()[0]->lost());
}

// --- Lookups in the store.

TEST_F(PeerDirectoryTest, UnknownPeerIsLookedUpInTheStore) {
  Record(Worker(1, 8));
  const auto by_name = Find("w1");
  ASSERT_THAT(by_name, IsOk());
  EXPECT_EQ((*by_name)->info(), Worker(1, 8));
  // And known from then on.
  EXPECT_EQ(directory_.FindByIncarnation(Incarnation{8}), *by_name);
  Record(Worker(2, 9));
  const auto by_rank = Find(WorkerId(2));
  ASSERT_THAT(by_rank, IsOk());
  EXPECT_EQ((*by_rank)->info(), Worker(2, 9));
  Record(Worker(3, 10));
  const auto by_info = Find(Worker(3, 10));
  ASSERT_THAT(by_info, IsOk());
  EXPECT_EQ((*by_info)->info(), Worker(3, 10));
}

TEST_F(PeerDirectoryTest, WorkerThatTheJobDoesNotHaveIsNotFound) {
  const auto found = Find("w1");
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kNotFound,
                              AllOf(HasSubstr("'w1'"), HasSubstr("'job'"))));
  EXPECT_THAT(GetErrorDetail(found.status()),
              Optional(ErrorDetail{.worker = "w1"}));
  // The record of a worker that is lost does not count.
  Record(Worker(1, 8));
  directory_.MarkLost(directory_.MakePeer(Worker(1, 8)), lost_);
  EXPECT_THAT(Find("w1"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PeerDirectoryTest, NameThatIsNotUtf8IsInvalid) {
  const auto found = Find("w\xff");
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(GetErrorDetail(found.status()).has_value());
}

TEST_F(PeerDirectoryTest, DestinationWithAnotherIncarnationIsNotFound) {
  Record(Worker(1, 8));
  const auto found = Find(Worker(1, 7));
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("0000000000000007"),
                                    HasSubstr("0000000000000008"))));
  EXPECT_THAT(GetErrorDetail(found.status()), Optional(Detail(Worker(1, 7))));
  WorkerInfo without_name = Worker(1, 7);
  without_name.name.clear();
  EXPECT_THAT(
      Find(without_name),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank")));
  // If it is known to be lost, its own error is the better one.
  const std::shared_ptr<Peer> lost = directory_.Add(Worker(1, 7));
  directory_.MarkLost(lost, lost_);
  EXPECT_THAT(Find(Worker(1, 7)), IsOkAndHolds(lost));
}

TEST_F(PeerDirectoryTest, RestartOfALostWorkerIsFound) {
  Record(Worker(1, 8));
  const std::shared_ptr<Peer> lost = directory_.Add(Worker(1, 8));
  directory_.MarkLost(lost, lost_);
  // It has not restarted yet.
  EXPECT_THAT(Find("w1"), IsOkAndHolds(lost));
  Record(Worker(1, 9), Worker(1, 8));
  // The store is not asked if it is known to be out of reach.
  num_messages_ = 0;
  EXPECT_THAT(Find("w1", /*store_reachable=*/false), IsOkAndHolds(lost));
  EXPECT_EQ(num_messages_, 0);
  const auto found = Find("w1");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ((*found)->info(), Worker(1, 9));
  EXPECT_FALSE((*found)->lost());
  EXPECT_THAT(Find(WorkerId(1)), IsOkAndHolds(*found));
}

TEST_F(PeerDirectoryTest, WithoutTheStoreUnknownWorkersAreUnavailable) {
  Record(Worker(1, 8));
  link_.SetPartitioned(true);
  const auto found = FindBy(absl::Seconds(1));
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kUnavailable,
                              AllOf(HasSubstr("'w0'"), HasSubstr("'w1'"),
                                    HasSubstr("does not answer"))));
  EXPECT_THAT(GetErrorDetail(found.status()),
              Optional(ErrorDetail{.worker = "w1"}));
}

TEST_F(PeerDirectoryTest, WithoutTheStoreALookupEndsAtTheDeadline) {
  link_.SetPartitioned(true);
  EXPECT_THAT(FindBy(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(PeerDirectoryTest, WithoutTheStoreALostPeerIsReturned) {
  const std::shared_ptr<Peer> lost = directory_.Add(Worker(1, 8));
  directory_.MarkLost(lost, lost_);
  link_.SetPartitioned(true);
  EXPECT_THAT(Find("w1"), IsOkAndHolds(lost));
}

// The deadline of an inbound call may have passed when its function makes a
// call.
TEST_F(PeerDirectoryTest, DeadlineThatHasPassedIsNoInvalidTimeout) {
  const auto unknown = FindBy(-absl::Seconds(1));
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kNotFound));
  const std::shared_ptr<Peer> lost = directory_.Add(Worker(1, 8));
  directory_.MarkLost(lost, lost_);
  EXPECT_THAT(FindBy(-absl::Seconds(1)), IsOkAndHolds(lost));
  link_.SetPartitioned(true);
  EXPECT_THAT(
      directory_.Find("w2", async::AddDelay(clock_.Now(), -absl::Seconds(1)),
                      /*store_reachable=*/true),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
}

// --- Senders that are not known.

TEST_F(PeerDirectoryTest, SenderThatIsAMemberIsAdded) {
  Record(Worker(1, 8));
  Confirm(Worker(1, 8));
  EXPECT_THAT(confirmed_, IsEmpty());
  EXPECT_EQ(executor_.num_queued(), 0u);
  EXPECT_EQ(control_executor_.RunAll(), 1u);
  ASSERT_THAT(confirmed_, ElementsAre(IsOk()));
  EXPECT_EQ((*confirmed_[0])->info(), Worker(1, 8));
  EXPECT_EQ(directory_.FindByIncarnation(Incarnation{8}), *confirmed_[0]);
}

TEST_F(PeerDirectoryTest, SenderThatIsNoMemberIsNotAdded) {
  // Without a record; with those of another incarnation and of another rank;
  // and lost.
  Confirm(Worker(1, 8));
  Record(Worker(2, 9));
  Confirm(Worker(2, 10));
  WorkerInfo other_rank = Worker(2, 9);
  other_rank.id = WorkerId(7);
  Confirm(other_rank);
  Record(Worker(3, 11));
  directory_.MarkLost(directory_.MakePeer(Worker(3, 11)), lost_);
  Confirm(Worker(3, 11));
  EXPECT_EQ(control_executor_.RunAll(), 3u);
  const auto not_a_member = [](const char* why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr("not a member"), HasSubstr(why)));
  };
  EXPECT_THAT(
      confirmed_,
      ElementsAre(not_a_member("nobody has its name"),
                  not_a_member("its name is that of worker 'w2' (rank 2"),
                  not_a_member("its name is that of worker 'w2' (rank 2"),
                  StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_THAT(directory_.All(), IsEmpty());
}

TEST_F(PeerDirectoryTest, UnreachableStoreConfirmsNobody) {
  Record(Worker(1, 8));
  link_.SetPartitioned(true);
  Confirm(Worker(1, 8));
  control_executor_.RunAll();
  EXPECT_THAT(confirmed_,
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("cannot look up worker 'w1'"))));
}

// So that no sender can keep the lookups from the others.
TEST_F(PeerDirectoryTest, CallsOfOneNameShareALookup) {
  Record(Worker(1, 8));
  for (uint64_t i = 0; i < 100; ++i) Confirm(Worker(1, 8 + i % 2));
  Confirm(Worker(2, 9));
  EXPECT_EQ(control_executor_.num_queued(), 2u);
  EXPECT_EQ(control_executor_.RunAll(), 2u);
  ASSERT_THAT(confirmed_, SizeIs(101));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(confirmed_[i].ok(), i % 2 == 0);
}

// The record may have been read before the sender wrote it.
TEST_F(PeerDirectoryTest, CallDuringALookupWaitsForTheNext) {
  int num_reads = 0;
  std::function<void()> on_first_read;
  SimulatedStoreLink link(&store_, {.on_read = [&](const std::string&) {
    if (num_reads++ == 0) on_first_read();
  }});
  WorkerDirectory records(&link, "job");
  PeerDirectory directory(state_, &records, &transport_);
  const auto keep = [this](absl::StatusOr<std::shared_ptr<Peer>> peer) {
    confirmed_.push_back(std::move(peer));
  };
  on_first_read = [&] { directory.Confirm(Worker(1, 8), keep); };
  directory.Confirm(
      Worker(1, 8), [&](absl::StatusOr<std::shared_ptr<Peer>> peer) {
        EXPECT_THAT(peer, StatusIs(absl::StatusCode::kFailedPrecondition));
        Record(Worker(1, 8));
      });
  control_executor_.RunAll();
  EXPECT_THAT(confirmed_, ElementsAre(IsOk()));
}

TEST_F(PeerDirectoryTest, FourNamesAreLookedUpAtOnce) {
  for (int rank = 1; rank <= 6; ++rank) {
    Record(Worker(rank, 200 + rank));
    Confirm(Worker(rank, 200 + rank));
  }
  EXPECT_EQ(control_executor_.num_queued(), 4u);
  EXPECT_EQ(control_executor_.RunAll(), 6u);
  EXPECT_THAT(confirmed_, testing::AllOf(SizeIs(6), testing::Each(IsOk())));
  Confirm(Worker(1, 201));
  EXPECT_EQ(control_executor_.num_queued(), 1u);
}

TEST_F(PeerDirectoryTest, ABoundedNumberOfCallsWaits) {
  constexpr int kNames = PeerDirectory::kMaxUnconfirmed;
  constexpr int kCalls = PeerDirectory::kMaxCallsPerUnconfirmed;
  const auto too_many =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("too many"));
  for (int rank = 0; rank < kNames; ++rank) Confirm(Worker(rank, 8));
  EXPECT_THAT(confirmed_, IsEmpty());
  Confirm(Worker(kNames, 8));
  EXPECT_THAT(confirmed_, ElementsAre(too_many));
  for (int i = 1; i < kCalls; ++i) Confirm(Worker(0, 8));
  EXPECT_THAT(confirmed_, SizeIs(1));
  Confirm(Worker(0, 8));
  EXPECT_THAT(confirmed_, ElementsAre(too_many, too_many));
  control_executor_.RunAll();
  EXPECT_THAT(confirmed_, SizeIs(2 + kNames + kCalls - 1));
  Confirm(Worker(kNames, 8));
  EXPECT_THAT(control_executor_.RunAll(), 1u);
}

// --- Losses.

TEST_F(PeerDirectoryTest, MemberOfTheSameTimeWasMet) {
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  EXPECT_FALSE(directory_.IsLost(Incarnation{8}));
  EXPECT_EQ(directory_.MarkLost(peer, lost_), Marking::kMet);
  EXPECT_TRUE(directory_.IsLost(Incarnation{8}));
  EXPECT_EQ(directory_.num_lost(), 1u);
  EXPECT_TRUE(peer->lost());
  EXPECT_FALSE(peer->left());
  EXPECT_THAT(peer->connection(),
              StatusIs(absl::StatusCode::kUnavailable, "it was lost"));
}

TEST_F(PeerDirectoryTest, WorkerThatDepartedEarlierWasNotMet) {
  EXPECT_EQ(directory_.MarkLost(directory_.MakePeer(Worker(1, 8)), lost_),
            Marking::kUnmet);
  EXPECT_EQ(directory_.MarkLeft(directory_.MakePeer(Worker(2, 9)), lost_),
            Marking::kUnmet);
  EXPECT_TRUE(directory_.IsLost(Incarnation{8}));
  EXPECT_TRUE(directory_.IsLost(Incarnation{9}));
  EXPECT_THAT(directory_.All(), IsEmpty());
}

TEST_F(PeerDirectoryTest, SenderThatWasConfirmedWasMet) {
  Record(Worker(1, 8));
  Confirm(Worker(1, 8));
  Confirm(Worker(2, 9));
  control_executor_.RunAll();
  EXPECT_EQ(directory_.MarkLost(directory_.MakePeer(Worker(1, 8)), lost_),
            Marking::kMet);
  EXPECT_EQ(directory_.MarkLost(directory_.MakePeer(Worker(2, 9)), lost_),
            Marking::kUnmet);
}

TEST_F(PeerDirectoryTest, LossIsMarkedOnce) {
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  ASSERT_EQ(directory_.MarkLost(peer, lost_), Marking::kMet);
  EXPECT_EQ(directory_.MarkLost(peer, absl::UnavailableError("again")),
            Marking::kMarkedBefore);
  EXPECT_EQ(directory_.MarkLeft(peer, absl::UnavailableError("again")),
            Marking::kMarkedBefore);
  EXPECT_THAT(peer->connection(),
              StatusIs(absl::StatusCode::kUnavailable, "it was lost"));
  EXPECT_EQ(directory_.num_lost(), 1u);
}

TEST_F(PeerDirectoryTest, PeerThatLeftCountsAsLost) {
  const std::shared_ptr<Peer> peer = directory_.Add(Worker(1, 8));
  EXPECT_EQ(directory_.MarkLeft(peer, lost_), Marking::kMet);
  EXPECT_TRUE(peer->left());
  EXPECT_TRUE(peer->lost());
  EXPECT_TRUE(directory_.IsLost(Incarnation{8}));
  EXPECT_EQ(directory_.MarkLost(peer, lost_), Marking::kMarkedBefore);
}

// A Peer may be added between the lookup of another and its marking.
TEST_F(PeerDirectoryTest, PeerInTheTableIsMarkedToo) {
  const std::shared_ptr<Peer> lost = directory_.Add(Worker(1, 8));
  EXPECT_EQ(directory_.MarkLost(directory_.MakePeer(Worker(1, 8)), lost_),
            Marking::kMet);
  EXPECT_TRUE(lost->lost());
  const std::shared_ptr<Peer> left = directory_.Add(Worker(2, 9));
  EXPECT_EQ(directory_.MarkLeft(directory_.MakePeer(Worker(2, 9)), lost_),
            Marking::kMet);
  EXPECT_TRUE(left->left());
}

TEST_F(PeerDirectoryTest, DepartureByTheLogIsNoLossByItself) {
  EXPECT_FALSE(directory_.HasDeparted(Incarnation{8}));
  directory_.SetDeparted(Incarnation{8});
  EXPECT_TRUE(directory_.HasDeparted(Incarnation{8}));
  EXPECT_FALSE(directory_.IsLost(Incarnation{8}));
  EXPECT_EQ(directory_.num_lost(), 0u);
}

}  // namespace
}  // namespace hawser::rpc
