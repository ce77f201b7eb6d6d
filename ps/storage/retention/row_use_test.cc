#include "ps/storage/retention/row_use.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

TEST(RowUseTest, CountsPushesUpToMany) {
  RowUse use(5, 0);
  for (uint32_t pushes : {1u, 2u, 2u}) {
    use = use.Pushed(7);
    EXPECT_EQ(use.pushes(), pushes);
  }
  EXPECT_EQ(use.Age(10), 3);
  EXPECT_EQ(use.WithPushes(1).pushes(), 1u);
  EXPECT_EQ(use.WithPushes(1).Age(10), 3);
}

// Tables continue the time of others, before and after the wrap of 30 bits.
TEST(RowUseTest, AgesAreRightAroundZeroAndTheWrap) {
  for (const int64_t time :
       {int64_t{0}, int64_t{-1000}, int64_t{1} << 30, (int64_t{1} << 32) - 1}) {
    const RowUse use(time, 1);
    EXPECT_EQ(use.Age(time), 0);
    EXPECT_EQ(use.Age(time + 1), 1);
    EXPECT_EQ(use.Age(time + RowUse::kMaxAge), RowUse::kMaxAge);
    EXPECT_EQ(use.Age(time - 1), 0);
    EXPECT_EQ(use.Later(-100).Age(time + 1), 101);
    EXPECT_EQ(use.Later(100).Age(time + 101), 1);
    EXPECT_EQ(use.Later(-100).pushes(), 1u);
  }
}

}  // namespace
}  // namespace hawser::ps
