#include "rref/owner_table.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/erased_value.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

constexpr rpc::WorkerRun kOwner{rpc::WorkerId(0), rpc::Incarnation{100}};
constexpr rpc::WorkerRun kA{rpc::WorkerId(1), rpc::Incarnation{101}};
constexpr rpc::WorkerRun kB{rpc::WorkerId(2), rpc::Incarnation{102}};
// Named only in messages.
constexpr rpc::WorkerRun kUnknown{rpc::WorkerId(3), rpc::Incarnation{103}};

const rpc::WorkerInfo kAInfo{"a", rpc::WorkerId(1), rpc::Incarnation{101}, ""};
const rpc::WorkerInfo kBInfo{"b", rpc::WorkerId(2), rpc::Incarnation{102}, ""};
const rpc::WorkerInfo kOwnerInfo{"owner", rpc::WorkerId(0),
                                 rpc::Incarnation{100}, ""};

RRefId Ref(rpc::WorkerRun creator, uint64_t number) {
  return {{creator, number}};
}
ForkId Fork(rpc::WorkerRun creator, uint64_t number) {
  return {{creator, number}};
}

rpc::ErasedValue Seven() { return rpc::Erase<int64_t>(7); }

class OwnerTableTest : public testing::Test {
 protected:
  // Runs the actions as an agent does.
  static void Run(OwnerTable::Actions actions) {
    for (auto& [value, error] : actions.failed) value->Set(error);
  }

  OwnerTable table_{kOwner, 16, {.max_references_per_peer = 3}};
};

TEST_F(OwnerTableTest, ValueStaysFromFirstForkToLast) {
  auto value = std::make_shared<OwnerValue>(Seven());
  const std::weak_ptr<OwnerValue> watch = value;
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  value.reset();
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kBInfo), IsOk());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kOwner, 2), kA));
  EXPECT_FALSE(watch.expired());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 1), kB));
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(table_.counts().owners, 0u);
}

// Nothing would end an entry that a late copy of the message adds.
TEST_F(OwnerTableTest, RepeatedFetchOfAnEndedReferenceIsNotAwaited) {
  ASSERT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo), IsOk());
  ASSERT_THAT(table_.Find(Ref(kA, 1), kAInfo), IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 2), kA));
  EXPECT_THAT(table_.Find(Ref(kA, 1), kAInfo),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, UnknownForkAndReferenceAreIgnoredOnDelete) {
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 1), kB));
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 9), kB));
  EXPECT_EQ(table_.counts().forks, 1u);
}

TEST_F(OwnerTableTest, WorkersEndOnlyTheirOwnForks) {
  auto value = std::make_shared<OwnerValue>(Seven());
  ASSERT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kOwner, 2), kB));
  EXPECT_EQ(table_.counts().forks, 1u);
  // Nor does a worker acknowledge the fork of another.
  table_.AcknowledgeShare(Ref(kOwner, 1), Fork(kOwner, 2), kB);
  table_.TakeStaleShares();
  EXPECT_EQ(table_.TakeStaleShares().size(), 1u);
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kOwner, 2), kA));
  EXPECT_EQ(table_.counts().owners, 0u);
}

// A worker may request any id, also one that the owner or another worker has
// yet to draw.
TEST_F(OwnerTableTest, ForksOfDifferentHoldersDoNotCollide) {
  auto value = std::make_shared<OwnerValue>(Seven());
  ASSERT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kOwner, 3), kAInfo),
              IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kAInfo), IsOk());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 3), kBInfo, value),
              IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kBInfo), IsOk());
  EXPECT_EQ(table_.counts().forks, 5u);
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_EQ(table_.counts().forks, 2u);
}

TEST_F(OwnerTableTest, ForkRequestRepeatedCountsOnce) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kBInfo), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kBInfo), IsOk());
  EXPECT_EQ(table_.counts().forks, 2u);
}

TEST_F(OwnerTableTest, OwnValueThatEndedIsNotAwaited) {
  EXPECT_THAT(table_.Find(Ref(kOwner, 1), kBInfo),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kBInfo),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(table_.counts().owners, 0u);
}

// Messages that a worker sent before it was lost may arrive after the end of
// the value.
TEST_F(OwnerTableTest, ValueThatLostAHolderIsNotAwaitedAfterItsEnd) {
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_THAT(table_.Create(Ref(kA, i), Fork(kA, i), kAInfo), IsOk());
    ASSERT_THAT(table_.RequestFork(Ref(kA, i), Fork(kB, i), kBInfo), IsOk());
  }
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  Run(table_.OnWorkerLost(kB, absl::UnavailableError("lost")));
  Run(table_.RemoveFork(Ref(kA, 2), Fork(kA, 2), kA));
  EXPECT_EQ(table_.counts().owners, 0u);
  for (uint64_t i = 1; i <= 2; ++i) {
    EXPECT_THAT(table_.RequestFork(Ref(kA, i), Fork(kB, 9), kAInfo),
                StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(table_.Find(Ref(kA, i), kAInfo),
                StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, FetchBeforeCreationGetsTheValue) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  EXPECT_EQ(table_.counts().awaited, 1u);
  auto created = table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo);
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(*awaited, *created);
  EXPECT_EQ(table_.counts().awaited, 0u);
}

TEST_F(OwnerTableTest, StopAwaitingFailsCurrentAndLaterWaiters) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  auto made = table_.Create(Ref(kA, 2), Fork(kA, 2), kAInfo);
  ASSERT_THAT(made, IsOk());
  Run(table_.StopAwaiting(absl::UnavailableError("leaving")));
  EXPECT_THAT((*awaited)->future().Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table_.Find(Ref(kA, 1), kBInfo),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table_.Find(Ref(kA, 2), kBInfo), IsOkAndHolds(*made));
  EXPECT_EQ(table_.counts().owners, 1u);
  EXPECT_EQ(table_.counts().awaited, 0u);
}

TEST_F(OwnerTableTest, AwaitedValueMayBeSharedBeforeItsCreation) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  EXPECT_THAT(table_.Share(Ref(kA, 1), Fork(kOwner, 5), kBInfo, *awaited),
              IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kOwner, 5), kB));
  EXPECT_EQ(table_.counts().awaited, 1u);
  EXPECT_EQ(*table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo), *awaited);
}

TEST_F(OwnerTableTest, CreationTwiceIsRefused) {
  ASSERT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(OwnerTableTest, WithdrawnCreationIsRefusedWhenItArrives) {
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(table_.Find(Ref(kA, 1), kBInfo),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(OwnerTableTest, WithdrawnCreationFailsTheAwaitedValue) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  ASSERT_TRUE((*awaited)->future().ready());
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, WithdrawnCreationThatArrivedKeepsOtherForks) {
  ASSERT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kA, 1), Fork(kA, 3), kBInfo), IsOk());
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  EXPECT_THAT(table_.Find(Ref(kA, 1), kBInfo), IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 3), kB));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, ShareIsStaleAfterAWholeInterval) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_TRUE(table_.TakeStaleShares().empty());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  EXPECT_TRUE(table_.TakeStaleShares().empty());
  ASSERT_EQ(table_.TakeStaleShares().size(), 1u);
  table_.AcknowledgeShare(Ref(kOwner, 1), Fork(kOwner, 2), kA);
  EXPECT_TRUE(table_.TakeStaleShares().empty());
}

TEST_F(OwnerTableTest, LostWorkersForksAreDropped) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              IsOk());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 3), kBInfo, value),
              IsOk());
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_EQ(table_.counts().forks, 1u);
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 4), kAInfo, value),
              StatusIs(absl::StatusCode::kUnavailable));
  Run(table_.OnWorkerLost(kB, absl::UnavailableError("B died")));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, LossOfTheCreatorFailsTheAwaitedValue) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(table_.counts().owners, 0u);
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kAInfo),
              StatusIs(absl::StatusCode::kAborted));
}

// The creator may never have existed, so that its loss is never reported.
TEST_F(OwnerTableTest, ValueAwaitedOnlyByLostWorkersIsForgotten) {
  auto awaited = table_.Find(Ref(kUnknown, 1), kAInfo);
  ASSERT_THAT(awaited, IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kUnknown, 2), Fork(kA, 2), kAInfo),
              IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kUnknown, 3), Fork(kA, 3), kAInfo),
              IsOk());
  Run(table_.RemoveFork(Ref(kUnknown, 3), Fork(kA, 3), kA));
  EXPECT_EQ(table_.counts().awaited, 3u);
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(table_.counts().owners, 0u);
  // A late message of the lost worker.
  EXPECT_THAT(table_.Find(Ref(kUnknown, 4), kAInfo),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, ValueAwaitedByOthersStaysWhenOneIsLost) {
  auto fetched = table_.Find(Ref(kB, 1), kAInfo);
  ASSERT_THAT(fetched, IsOk());
  EXPECT_THAT(table_.Find(Ref(kB, 1), kBInfo), IsOk());
  ASSERT_THAT(table_.Find(Ref(kB, 2), kAInfo), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kB, 2), Fork(kB, 3), kBInfo), IsOk());
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_EQ(table_.counts().awaited, 2u);
  EXPECT_FALSE((*fetched)->future().ready());
  EXPECT_EQ(*table_.Create(Ref(kB, 1), Fork(kB, 1), kBInfo), *fetched);
}

TEST_F(OwnerTableTest, CloseFailsAwaitedValuesAndDropsOthers) {
  auto awaited = table_.Find(Ref(kA, 1), kBInfo);
  ASSERT_THAT(awaited, IsOk());
  Run(table_.Close(absl::CancelledError("stop")));
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(table_.counts().owners, 0u);
}

class OwnerTableLimitTest : public OwnerTableTest {
 protected:
  // Uses the whole quota of A.
  void SetUp() override {
    for (uint64_t i = 1; i <= 3; ++i) {
      ASSERT_THAT(table_.Create(Ref(kA, i), Fork(kA, i), kAInfo), IsOk());
    }
  }

  static auto Exceeds() {
    return StatusIs(
        absl::StatusCode::kResourceExhausted,
        testing::AllOf(
            testing::HasSubstr("worker 'a' has 3 references"),
            testing::HasSubstr("ReferenceLimits::max_references_per_peer")));
  }

  void ExpectOnlyThree() {
    EXPECT_EQ(table_.counts().owners, 3u);
    EXPECT_EQ(table_.counts().forks, 3u);
    EXPECT_EQ(table_.counts().awaited, 0u);
  }
};

TEST_F(OwnerTableLimitTest, CreationAboveTheLimitIsRefusedUntilAForkEnds) {
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), Exceeds());
  ExpectOnlyThree();
  // The quotas of other workers are separate.
  EXPECT_THAT(table_.Create(Ref(kB, 1), Fork(kB, 1), kBInfo), IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), IsOk());
}

TEST_F(OwnerTableLimitTest, SharesAndForkRequestsAboveTheLimitAreRefused) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kAInfo, value),
              Exceeds());
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_THAT(table_.RequestFork(Ref(kA, 1), Fork(kB, 1), kAInfo), Exceeds());
  ExpectOnlyThree();
}

TEST_F(OwnerTableLimitTest, RepeatedForkRequestCountsOnce) {
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  ASSERT_THAT(table_.RequestFork(Ref(kA, 2), Fork(kB, 1), kAInfo), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kA, 2), Fork(kB, 1), kAInfo), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kA, 2), Fork(kB, 2), kAInfo), Exceeds());
}

TEST_F(OwnerTableLimitTest, AwaitedValuesCountForTheWorkersThatNamedThem) {
  EXPECT_THAT(table_.Find(Ref(kB, 1), kAInfo), Exceeds());
  EXPECT_THAT(table_.RequestFork(Ref(kB, 1), Fork(kB, 2), kAInfo), Exceeds());
  ExpectOnlyThree();
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 1)));
  // Awaited values count until their creation arrives.
  ASSERT_THAT(table_.Find(Ref(kB, 1), kAInfo), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), Exceeds());
  ASSERT_THAT(table_.Create(Ref(kB, 1), Fork(kB, 1), kBInfo), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), IsOk());
}

TEST_F(OwnerTableLimitTest, FailedAwaitedValuesDoNotCount) {
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  ASSERT_THAT(table_.Find(Ref(kB, 1), kAInfo), IsOk());
  Run(table_.WithdrawCreation(Ref(kB, 1), Fork(kB, 1)));
  ASSERT_THAT(table_.Find(Ref(kB, 2), kAInfo), IsOk());
  Run(table_.OnWorkerLost(kB, absl::UnavailableError("B died")));
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), IsOk());
}

TEST_F(OwnerTableLimitTest, CreationAfterItsFetchCountsOnce) {
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  ASSERT_THAT(table_.Find(Ref(kA, 4), kAInfo), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 4), Fork(kA, 4), kAInfo), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 5), Fork(kA, 5), kAInfo), Exceeds());
}

TEST_F(OwnerTableLimitTest, ForkOfAnAwaitedValueCountsOnceAlsoAfterItsEnd) {
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 1), kA));
  EXPECT_THAT(table_.RequestFork(Ref(kB, 1), Fork(kB, 2), kAInfo), IsOk());
  EXPECT_THAT(table_.Find(Ref(kB, 1), kAInfo), IsOk());
  EXPECT_THAT(table_.Find(Ref(kB, 2), kAInfo), Exceeds());
  Run(table_.RemoveFork(Ref(kB, 1), Fork(kB, 2), kA));
  ASSERT_EQ(table_.counts().awaited, 1u);
  EXPECT_THAT(table_.Find(Ref(kB, 2), kAInfo), Exceeds());
}

TEST_F(OwnerTableLimitTest, FetchesOfExistingValuesDoNotCount) {
  EXPECT_THAT(table_.Find(Ref(kA, 1), kAInfo), IsOk());
}

TEST_F(OwnerTableLimitTest, LossFreesTheQuotaForTheNextIncarnation) {
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  rpc::WorkerInfo next = kAInfo;
  next.incarnation = rpc::Incarnation{201};
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_THAT(table_.Create(Ref(RunOf(next), i), Fork(RunOf(next), i), next),
                IsOk());
  }
  // The quota is per name, not per incarnation: a new incarnation gains
  // nothing.
  rpc::WorkerInfo other = kAInfo;
  other.incarnation = rpc::Incarnation{301};
  EXPECT_THAT(table_.Create(Ref(RunOf(other), 1), Fork(RunOf(other), 1), other),
              Exceeds());
}

TEST_F(OwnerTableLimitTest, LossFreesAwaitedEntriesForTheNextIncarnation) {
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  rpc::WorkerInfo next = kAInfo;
  for (uint64_t life = 201; life <= 203; ++life) {
    next.incarnation = rpc::Incarnation{life};
    for (uint64_t i = 1; i <= 3; ++i) {
      EXPECT_THAT(table_.Find(Ref(kUnknown, i), next), IsOk());
    }
    EXPECT_THAT(table_.Find(Ref(kUnknown, 4), next), Exceeds());
    Run(table_.OnWorkerLost(RunOf(next), absl::UnavailableError("died")));
  }
}

TEST_F(OwnerTableLimitTest, AwaitedValueCountsForEachWorkerThatAwaitsIt) {
  ASSERT_THAT(table_.Find(Ref(kUnknown, 1), kBInfo), IsOk());
  EXPECT_THAT(table_.Find(Ref(kUnknown, 1), kAInfo), Exceeds());
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_THAT(table_.Find(Ref(kUnknown, i), kBInfo), IsOk());
  }
  EXPECT_THAT(table_.Find(Ref(kUnknown, 4), kBInfo),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(OwnerTableLimitTest, OwnForksAreNotLimited) {
  auto value = std::make_shared<OwnerValue>(Seven());
  for (uint64_t i = 1; i <= 5; ++i) {
    EXPECT_THAT(
        table_.Share(Ref(kOwner, i), Fork(kOwner, i), kOwnerInfo, value),
        IsOk());
  }
}

TEST(ReferenceLimitsTest, MustBePositive) {
  EXPECT_THAT(Validate(ReferenceLimits{}), IsOk());
  EXPECT_THAT(Validate(ReferenceLimits{.max_references_per_peer = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_references_per_peer")));
}

}  // namespace
}  // namespace hawser::rref
