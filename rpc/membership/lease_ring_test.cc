#include "rpc/membership/lease_ring.h"

#include <chrono>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/member_view.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr async::MonotonicTime kStart{};
constexpr absl::Duration kSettlingTime = absl::Seconds(3);

// The incarnation of the member with this rank.
Incarnation Of(int rank) {
  return Incarnation{100 + static_cast<uint64_t>(rank)};
}

WorkerInfo Worker(int rank) {
  return {.name = absl::StrCat("w", rank),
          .id = WorkerId(rank),
          .incarnation = Of(rank),
          .address = "inproc"};
}

// The ring of rank 2.
class LeaseRingTest : public testing::Test {
 protected:
  void Join(std::initializer_list<int> ranks) {
    for (const int rank : ranks) view_.Apply(JoinedEvent(Worker(rank)));
    ring_.OnViewChanged();
  }
  void Leave(int rank) {
    view_.Apply(LeftEvent(Of(rank)));
    ring_.OnViewChanged();
  }

  MemberView view_{Worker(2), [](const MemberEvent&) {}};
  LeaseRing ring_{&view_, kSettlingTime};
};

TEST_F(LeaseRingTest, NextTwoByRankAreWatchedInACircle) {
  Join({0, 1, 3});
  // This worker has not joined yet.
  EXPECT_THAT(ring_.LeasesToWatch(kStart), IsEmpty());
  Join({2});
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(3), Of(0)));
  Leave(3);
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(0), Of(1)));
  Leave(0);
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(1)));
  Leave(2);
  EXPECT_THAT(ring_.LeasesToWatch(kStart), IsEmpty());
}

TEST_F(LeaseRingTest, SuspectsAreSkipped) {
  Join({0, 1, 2, 3, 4});
  ring_.AddSuspect(Of(3));
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(4), Of(0)));
  ring_.AddSuspect(Of(4));
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(0), Of(1)));
  EXPECT_THAT(ring_.Suspects(), UnorderedElementsAre(Of(3), Of(4)));
  ring_.RemoveSuspect(Of(3));
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(3), Of(0)));
  Leave(4);
  EXPECT_THAT(ring_.Suspects(), IsEmpty());
}

TEST_F(LeaseRingTest, NewcomersDoNotCountAsOneOfTheTwo) {
  Join({0, 1, 2, 3, 4});
  ring_.AddNewcomer(Of(3), kStart);
  EXPECT_THAT(ring_.LeasesToWatch(kStart), ElementsAre(Of(3), Of(4), Of(0)));
  const auto settled = async::AddDelay(kStart, kSettlingTime);
  EXPECT_THAT(ring_.LeasesToWatch(settled), SizeIs(3));
  EXPECT_THAT(ring_.LeasesToWatch(settled + std::chrono::nanoseconds(1)),
              ElementsAre(Of(3), Of(4)));
}

TEST_F(LeaseRingTest, MembersAfterOneReachUpToThisWorker) {
  Join({0, 1, 2, 3, 4});
  EXPECT_THAT(ring_.MembersAfter(Of(3)), ElementsAre(Of(4), Of(0), Of(1)));
  EXPECT_THAT(ring_.MembersAfter(Of(0)), ElementsAre(Of(1)));
  EXPECT_THAT(ring_.MembersAfter(Of(1)), IsEmpty());
  EXPECT_THAT(ring_.MembersAfter(Of(9)), IsEmpty());
}

TEST_F(LeaseRingTest, NumberOfLeasesIsLimited) {
  Join({2});
  for (int rank = 3; rank < 103; ++rank) {
    Join({rank});
    ring_.AddNewcomer(Of(rank), kStart);
  }
  EXPECT_THAT(ring_.LeasesToWatch(kStart), SizeIs(16));
}

}  // namespace
}  // namespace hawser::rpc
