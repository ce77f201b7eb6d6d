#include "collectives/gloo/machines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::collectives {
namespace {

using ::testing::ElementsAre;

TEST(MachinesTest, RanksAreGroupedByName) {
  const Machines machines({"b", "a", "b", "c", "a", "b"});
  ASSERT_EQ(machines.count(), 3);
  EXPECT_THAT(machines.ranks_on(0), ElementsAre(0, 2, 5));
  EXPECT_THAT(machines.ranks_on(1), ElementsAre(1, 4));
  EXPECT_THAT(machines.ranks_on(2), ElementsAre(3));
  EXPECT_EQ(machines.machine_of(5), 0);
  EXPECT_EQ(machines.index_of(5), 2);
  EXPECT_EQ(machines.machine_of(3), 2);
  EXPECT_EQ(machines.index_of(3), 0);
  EXPECT_FALSE(machines.are_equal());
}

TEST(MachinesTest, CounterpartsOfSmallMachinesServeSeveralIndices) {
  const Machines machines({"a", "a", "a", "b", "b"});
  EXPECT_EQ(machines.Counterpart(0, 2), 2);
  EXPECT_EQ(machines.Counterpart(1, 0), 3);
  EXPECT_EQ(machines.Counterpart(1, 1), 4);
  EXPECT_EQ(machines.Counterpart(1, 2), 3);
}

TEST(MachinesTest, MachinesOfOneSizeAreEqual) {
  EXPECT_TRUE(Machines({"a", "b", "a", "b"}).are_equal());
  EXPECT_TRUE(Machines({"a"}).are_equal());
}

TEST(MachinesTest, RanksThatCannotShareAreSplitWithTheirMachine) {
  const Machines machines = Machines({"a", "b", "a", "b", "c"})
                                .Split({true, true, true, false, true});
  ASSERT_EQ(machines.count(), 4);
  EXPECT_THAT(machines.ranks_on(0), ElementsAre(0, 2));
  EXPECT_THAT(machines.ranks_on(1), ElementsAre(1));
  EXPECT_THAT(machines.ranks_on(2), ElementsAre(3));
  EXPECT_THAT(machines.ranks_on(3), ElementsAre(4));
}

}  // namespace
}  // namespace hawser::collectives
