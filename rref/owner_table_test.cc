#include "rref/owner_table.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/retained_value.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::StatusIs;

constexpr WorkerRun kOwner{0, 100};
constexpr WorkerRun kA{1, 101};
constexpr WorkerRun kB{2, 102};

RRefId Ref(WorkerRun maker, uint64_t number) { return {{maker, number}}; }
ForkId Fork(WorkerRun maker, uint64_t number) { return {{maker, number}}; }

rpc::RetainedValue Seven() { return rpc::Retain<int64_t>(7); }

class OwnerTableTest : public testing::Test {
 protected:
  // What an agent does with them.
  static void Run(OwnerTable::Effects effects) {
    for (auto& [value, error] : effects.failed) value->Set(error);
  }

  OwnerTable table_{kOwner, 16};
};

TEST_F(OwnerTableTest, ValueStaysFromFirstForkToLast) {
  auto value = std::make_shared<OwnerValue>(Seven());
  const std::weak_ptr<OwnerValue> watch = value;
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kA, value), IsOk());
  value.reset();
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kB), IsOk());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kOwner, 2)));
  EXPECT_FALSE(watch.expired());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 1)));
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, UnknownForkAndReferenceAreIgnoredOnDelete) {
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 1)));
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kA, value), IsOk());
  Run(table_.RemoveFork(Ref(kOwner, 1), Fork(kA, 9)));
  EXPECT_EQ(table_.counts().forks, 1u);
}

TEST_F(OwnerTableTest, ForkRequestRepeatedCountsOnce) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kA, value), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kB), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kB), IsOk());
  EXPECT_EQ(table_.counts().forks, 2u);
}

TEST_F(OwnerTableTest, OwnValueThatIsGoneIsNotAwaited) {
  EXPECT_THAT(table_.Find(Ref(kOwner, 1)),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(table_.RequestFork(Ref(kOwner, 1), Fork(kA, 1), kB),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, FetchBeforeCreationGetsTheValue) {
  auto awaited = table_.Find(Ref(kA, 1));
  ASSERT_THAT(awaited, IsOk());
  EXPECT_EQ(table_.counts().awaited, 1u);
  auto created = table_.Create(Ref(kA, 1), Fork(kA, 2), kA);
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(*awaited, *created);
  EXPECT_EQ(table_.counts().awaited, 0u);
}

TEST_F(OwnerTableTest, AwaitedValueMayBeSharedBeforeItsCreation) {
  auto awaited = table_.Find(Ref(kA, 1));
  ASSERT_THAT(awaited, IsOk());
  EXPECT_THAT(table_.Share(Ref(kA, 1), Fork(kOwner, 5), kB, *awaited), IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kOwner, 5)));
  EXPECT_EQ(table_.counts().awaited, 1u);
  EXPECT_EQ(*table_.Create(Ref(kA, 1), Fork(kA, 2), kA), *awaited);
}

TEST_F(OwnerTableTest, CreationTwiceIsRefused) {
  ASSERT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kA), IsOk());
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kA),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(OwnerTableTest, WithdrawnCreationIsRefusedWhenItArrives) {
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kA),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(table_.Find(Ref(kA, 1)), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(OwnerTableTest, WithdrawnCreationFailsWhoAwaitsIt) {
  auto awaited = table_.Find(Ref(kA, 1));
  ASSERT_THAT(awaited, IsOk());
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  ASSERT_TRUE((*awaited)->future().ready());
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, WithdrawnCreationThatArrivedKeepsOtherForks) {
  ASSERT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kA), IsOk());
  EXPECT_THAT(table_.RequestFork(Ref(kA, 1), Fork(kA, 3), kB), IsOk());
  Run(table_.WithdrawCreation(Ref(kA, 1), Fork(kA, 2)));
  EXPECT_THAT(table_.Find(Ref(kA, 1)), IsOk());
  Run(table_.RemoveFork(Ref(kA, 1), Fork(kA, 3)));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, ShareIsStaleAfterAWholeInterval) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_TRUE(table_.TakeStaleShares().empty());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kA, value), IsOk());
  EXPECT_TRUE(table_.TakeStaleShares().empty());
  ASSERT_EQ(table_.TakeStaleShares().size(), 1u);
  table_.AcknowledgeShare(Ref(kOwner, 1), Fork(kOwner, 2));
  EXPECT_TRUE(table_.TakeStaleShares().empty());
}

TEST_F(OwnerTableTest, LostWorkersForksAreDropped) {
  auto value = std::make_shared<OwnerValue>(Seven());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 2), kA, value), IsOk());
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 3), kB, value), IsOk());
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_EQ(table_.counts().forks, 1u);
  EXPECT_THAT(table_.Share(Ref(kOwner, 1), Fork(kOwner, 4), kA, value),
              StatusIs(absl::StatusCode::kUnavailable));
  Run(table_.OnWorkerLost(kB, absl::UnavailableError("B died")));
  EXPECT_EQ(table_.counts().owners, 0u);
}

TEST_F(OwnerTableTest, CreationOfALostWorkerFailsWhoAwaitsIt) {
  auto awaited = table_.Find(Ref(kA, 1));
  ASSERT_THAT(awaited, IsOk());
  Run(table_.OnWorkerLost(kA, absl::UnavailableError("A died")));
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(table_.counts().owners, 0u);
  EXPECT_THAT(table_.Create(Ref(kA, 1), Fork(kA, 2), kA),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(OwnerTableTest, CloseFailsTheAwaitedAndDropsTheRest) {
  auto awaited = table_.Find(Ref(kA, 1));
  ASSERT_THAT(awaited, IsOk());
  Run(table_.Close(absl::CancelledError("stop")));
  EXPECT_THAT((*awaited)->future().result(),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(table_.counts().owners, 0u);
}

}  // namespace
}  // namespace hawser::rref
