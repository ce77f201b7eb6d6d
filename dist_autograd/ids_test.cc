#include "dist_autograd/ids.h"

#include "gtest/gtest.h"

namespace hawser::dist_autograd {
namespace {

TEST(IdsTest, WorkerIsInTheTopBitsAndCounterBelow) {
  IdSource ids(7, 0);
  const ContextId context = *ids.NextContextId();
  const AutogradMessageId message = *ids.NextMessageId();
  EXPECT_EQ(ToNumber(context), (uint64_t{7} << 48) | 1);
  EXPECT_EQ(ToNumber(message), (uint64_t{7} << 48) | 2);
  EXPECT_EQ(CreatorOf(context), 7);
  EXPECT_EQ(CreatorOf(message), 7);
  EXPECT_EQ(ToString(context), "7:1");
}

TEST(IdsTest, HighestWorkerAndStartDoNotOverlap) {
  IdSource ids(32767, ~uint64_t{0});
  const ContextId context = *ids.NextContextId();
  EXPECT_EQ(CreatorOf(context), 32767);
  EXPECT_EQ(ToNumber(context) & ((uint64_t{1} << 48) - 1), uint64_t{1} << 47);
}

TEST(IdsTest, IdsAreUnique) {
  IdSource ids(1, 5);
  EXPECT_NE(ToNumber(*ids.NextContextId()), ToNumber(*ids.NextContextId()));
}

}  // namespace
}  // namespace hawser::dist_autograd
