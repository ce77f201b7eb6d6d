#include "rpc/peers/peer_table.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/inproc/network.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

class PeerTableTest : public testing::Test {
 protected:
  std::shared_ptr<Peer> Make(int rank, uint64_t incarnation) {
    return std::make_shared<Peer>(
        WorkerInfo{"w" + std::to_string(rank), WorkerId(rank),
                   Incarnation{incarnation}, address_},
        "", transport_.get());
  }

  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  InprocNetwork network_{{.executor = &executor_, .clock = &clock_}};
  std::unique_ptr<Transport> transport_ = network_.NewTransport();
  // This worker's own address.
  const std::string address_ = *transport_->Listen("", {});
  PeerTable table_;
};

TEST_F(PeerTableTest, FindsByNameIdAndInfo) {
  const std::shared_ptr<Peer> peer = Make(3, 7);
  table_.Insert(peer);
  EXPECT_EQ(table_.Find("w3"), peer);
  EXPECT_EQ(table_.Find(WorkerId(3)), peer);
  EXPECT_EQ(table_.Find(peer->info()), peer);
  EXPECT_EQ(table_.Find("w4"), nullptr);
  EXPECT_EQ(table_.Find(Make(3, 8)->info()), nullptr);
  WorkerInfo nameless = peer->info();
  nameless.name.clear();
  EXPECT_EQ(table_.Find(nameless), peer);
  nameless.incarnation = Incarnation{8};
  EXPECT_EQ(table_.Find(nameless), nullptr);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{7}), peer);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{8}), nullptr);
}

TEST_F(PeerTableTest, LaterIncarnationReplacesTheEarlier) {
  table_.Insert(Make(3, 7));
  const std::shared_ptr<Peer> later = Make(3, 8);
  table_.Insert(later);
  table_.Insert(Make(1, 1));
  EXPECT_EQ(table_.Find("w3"), later);
  ASSERT_EQ(table_.All().size(), 2u);
  EXPECT_EQ(table_.All()[1], later);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{8}), later);
}

// Membership events of an earlier incarnation may arrive late.
TEST_F(PeerTableTest, AnIncarnationHasOneObject) {
  const std::shared_ptr<Peer> peer = Make(3, 8);
  EXPECT_EQ(table_.Insert(peer), peer);
  const std::shared_ptr<Peer> earlier = Make(3, 7);
  EXPECT_EQ(table_.Insert(earlier), earlier);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{8}), peer);
  EXPECT_EQ(table_.Insert(Make(3, 8)), peer);
  EXPECT_EQ(table_.Find("w3"), peer);
  EXPECT_EQ(table_.Find(WorkerId(3)), peer);
}

TEST_F(PeerTableTest, ReplacedPeersAreDroppedOnceTheyAreLost) {
  const std::shared_ptr<Peer> earlier = table_.Insert(Make(3, 7));
  table_.Insert(Make(3, 8));
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{7}), earlier);
  EXPECT_TRUE(earlier->MarkLost(absl::UnavailableError("lost")));
  table_.Insert(Make(1, 1));
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{7}), nullptr);
  EXPECT_NE(table_.FindByIncarnation(Incarnation{8}), nullptr);
}

// Events lag behind the store, where a restarted worker was found.
TEST_F(PeerTableTest, StaleMembershipDoesNotTakeTheNameOfALaterWorker) {
  const std::shared_ptr<Peer> first = table_.Announce(Make(3, 7));
  EXPECT_EQ(table_.Find("w3"), first);
  const std::shared_ptr<Peer> third = table_.Insert(Make(3, 9));
  EXPECT_EQ(table_.Find("w3"), third);
  const std::shared_ptr<Peer> second = table_.Announce(Make(3, 8));
  EXPECT_EQ(table_.Find("w3"), third);
  EXPECT_EQ(table_.Find(WorkerId(3)), third);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{8}), second);
  EXPECT_EQ(table_.Announce(Make(3, 9)), third);
  const std::shared_ptr<Peer> fourth = table_.Announce(Make(3, 10));
  EXPECT_EQ(table_.Find("w3"), fourth);
  EXPECT_EQ(table_.Find(WorkerId(3)), fourth);
}

// The lost peer was found in the store just before it was lost, and was never
// announced.
TEST_F(PeerTableTest, LostPeerDoesNotKeepItsNameFromALaterWorker) {
  const std::shared_ptr<Peer> lost = table_.Insert(Make(3, 7));
  EXPECT_TRUE(lost->MarkLost(absl::UnavailableError("lost")));
  const std::shared_ptr<Peer> next = table_.Announce(Make(3, 8));
  EXPECT_EQ(table_.Find("w3"), next);
  EXPECT_EQ(table_.Find(WorkerId(3)), next);
  EXPECT_EQ(table_.FindByIncarnation(Incarnation{7}), nullptr);
}

TEST_F(PeerTableTest, LostPeerReturnsItsLoss) {
  const std::shared_ptr<Peer> peer = Make(3, 7);
  absl::StatusOr<std::shared_ptr<Connection>> connection = peer->connection();
  ASSERT_THAT(connection, IsOk());
  absl::Status seen;
  (*connection)
      ->Call("/x", Payload(), async::kNever,
             [&](absl::StatusOr<Payload> reply) { seen = reply.status(); });
  EXPECT_TRUE(peer->MarkLost(absl::UnavailableError("lost")));
  EXPECT_FALSE(peer->MarkLost(absl::UnavailableError("again")));
  executor_.RunAll();
  EXPECT_EQ(seen, absl::UnavailableError("lost"));
  EXPECT_TRUE(peer->lost());
  EXPECT_THAT(peer->connection(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PeerTableTest, IsWatchedOnce) {
  const std::shared_ptr<Peer> peer = Make(3, 7);
  EXPECT_TRUE(peer->SetWatched());
  EXPECT_FALSE(peer->SetWatched());
}

}  // namespace
}  // namespace hawser::rpc
