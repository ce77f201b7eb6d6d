#include "async/check.h"

#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(CheckTest, TrueConditionDoesNotEvaluateTheMessage) {
  int evaluated = 0;
  HAWSER_CHECK(1 + 1 == 2) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckDeathTest, FalseConditionNamesItselfAndTheMessage) {
  EXPECT_DEATH(HAWSER_CHECK(2 < 1) << "shard " << 7,
               "check_test.cc:.*check failed: 2 < 1 shard 7");
}

}  // namespace
}  // namespace hawser::async
