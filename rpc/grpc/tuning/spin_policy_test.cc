#include "rpc/grpc/tuning/spin_policy.h"

#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

TEST(SpinPolicyTest, OneThreadSpinsAtATime) {
  SpinPolicy policy;
  EXPECT_TRUE(policy.Begin());
  EXPECT_FALSE(policy.Begin());
  policy.End(/*came=*/true);
  EXPECT_TRUE(policy.Begin());
}

TEST(SpinPolicyTest, UnsuccessfulSpinSuspendsSpinning) {
  SpinPolicy policy;
  ASSERT_TRUE(policy.Begin());
  policy.End(/*came=*/false);
  for (int i = 0; i < SpinPolicy::kRest; ++i) EXPECT_FALSE(policy.Begin());
  EXPECT_TRUE(policy.Begin());
  policy.End(/*came=*/true);
  EXPECT_TRUE(policy.Begin());
}

}  // namespace
}  // namespace hawser::rpc
