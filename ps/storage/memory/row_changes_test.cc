#include "ps/storage/memory/row_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace hawser::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint32_t> Changed(RowChanges& changes, uint64_t snapshot) {
  const std::optional<ChangesSince> since = changes.Since(snapshot);
  EXPECT_TRUE(since.has_value());
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < since->changed.num_slots(); ++slot) {
    if (since->changed.Contains(slot)) slots.push_back(slot);
  }
  return slots;
}

TEST(RowChangesTest, ChangesSinceEachSnapshotAreKnown) {
  RowChanges changes(/*remembers_removed=*/false);
  changes.Create(0);
  changes.Change(0);
  EXPECT_FALSE(changes.Knows(1));
  EXPECT_EQ(changes.bytes(), 0u);
  changes.Cut(1, 100);
  changes.Change(7);
  changes.Cut(2, 100);
  changes.Change(99);
  changes.Create(100);
  changes.Create(1000);
  EXPECT_THAT(Changed(changes, 1), ElementsAre(7, 99, 100, 1000));
  EXPECT_THAT(Changed(changes, 2), ElementsAre(99, 100, 1000));
  changes.Cut(3, 1001);
  EXPECT_THAT(Changed(changes, 3), IsEmpty());
  EXPECT_FALSE(changes.Since(4).has_value());
}

TEST(RowChangesTest, ASnapshotThatIsSavedAgainKeepsItsFirstCut) {
  RowChanges changes(false);
  changes.Cut(1, 10);
  changes.Change(3);
  changes.Cut(1, 10);
  EXPECT_THAT(Changed(changes, 1), ElementsAre(3));
}

TEST(RowChangesTest, TheLastBaseStaysWhileLaterSavesFail) {
  RowChanges changes(false);
  changes.Cut(1, 64);
  for (uint32_t i = 0; i < 20; ++i) {
    changes.Change(i);
    EXPECT_EQ(Changed(changes, 1).size(), i + 1);
    changes.Cut(100 + i, 64);
  }
  EXPECT_THAT(Changed(changes, 119), IsEmpty());
  EXPECT_TRUE(changes.Knows(118));
  EXPECT_FALSE(changes.Knows(110));
}

TEST(RowChangesTest, OldSnapshotsThatAreNoBaseAreForgotten) {
  RowChanges changes(false);
  for (uint64_t i = 1; i <= 10; ++i) changes.Cut(i, 64);
  EXPECT_FALSE(changes.Knows(10 - RowChanges::kMaxCuts));
  EXPECT_TRUE(changes.Knows(11 - RowChanges::kMaxCuts));
}

TEST(RowChangesTest, RemovedKeysOfASnapshotAreKnown) {
  RowChanges changes(true);
  changes.Cut(1, 10);
  changes.Remove(500, 3);
  // Created in its place: the snapshot does not have it.
  changes.Create(3);
  changes.Remove(600, 3);
  EXPECT_THAT(changes.Since(1)->removed, ElementsAre(500));
  changes.Create(3);
  changes.Cut(2, 10);
  changes.Remove(700, 3);
  EXPECT_THAT(changes.Since(1)->removed, ElementsAre(500, 700));
  EXPECT_THAT(changes.Since(2)->removed, ElementsAre(700));
}

TEST(RowChangesTest, TooManyRemovedKeysEndAllSnapshots) {
  RowChanges changes(true);
  changes.Cut(1, 100);
  for (uint64_t key = 0; key < RowChanges::kMinRemoved; ++key) {
    changes.Remove(key, static_cast<uint32_t>(key % 100));
  }
  EXPECT_TRUE(changes.Knows(1));
  changes.Remove(1'000'000, 0);
  EXPECT_FALSE(changes.Knows(1));
  EXPECT_EQ(changes.bytes(), 0u);
  changes.Change(5);
  changes.Cut(2, 100);
  EXPECT_THAT(Changed(changes, 2), IsEmpty());
}

TEST(RowChangesTest, RowsThatLeaveMemoryKeepTheirChanges) {
  RowChanges changes(false);
  changes.Cut(1, 10);
  changes.Change(4);
  const uint32_t first = changes.GenerationOf(4);
  EXPECT_EQ(changes.GenerationOf(5), 0u);
  changes.Cut(2, 10);
  changes.Change(6);
  const uint32_t second = changes.GenerationOf(6);
  EXPECT_GE(first, changes.Since(1)->generation);
  EXPECT_LT(first, changes.Since(2)->generation);
  EXPECT_GE(second, changes.Since(2)->generation);
  // Into slots that others have left.
  changes.Load(6, first);
  changes.Load(4, 0);
  changes.Load(700, second);
  EXPECT_THAT(Changed(changes, 1), ElementsAre(6, 700));
  EXPECT_THAT(Changed(changes, 2), ElementsAre(700));
  changes.Change(6);
  EXPECT_THAT(Changed(changes, 2), ElementsAre(6, 700));
}

}  // namespace
}  // namespace hawser::ps
