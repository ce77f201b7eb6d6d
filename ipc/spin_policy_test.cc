#include "ipc/spin_policy.h"

#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

TEST(SpinPolicyTest, OneThreadSpinsAtATime) {
  SpinPolicy policy;
  EXPECT_TRUE(policy.Begin());
  EXPECT_FALSE(policy.Begin());
  policy.End();
  EXPECT_TRUE(policy.Begin());
}

}  // namespace
}  // namespace hawser::ipc
