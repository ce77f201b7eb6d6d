#include "rpc/peers/per_peer_quota.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PerPeerQuotaTest : public testing::Test {
 protected:
  PerPeerQuota quota_{2, "boxes", "Options::max_boxes"};
};

TEST_F(PerPeerQuotaTest, EachPeerIsLimitedUntilItDropsOne) {
  auto first = quota_.Admit("a");
  auto second = quota_.Admit("a");
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(quota_.Admit("a"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("'a' has 2 boxes"),
                             HasSubstr("Options::max_boxes"))));
  auto other = quota_.Admit("b");
  EXPECT_THAT(other, IsOk());
  *first = PerPeerQuota::Grant();
  EXPECT_EQ(quota_.held_for("a"), 1u);
  EXPECT_THAT(quota_.Admit("a"), IsOk());
}

TEST_F(PerPeerQuotaTest, PeersWithoutResourcesUseNoMemory) {
  {
    std::vector<PerPeerQuota::Grant> grants;
    grants.push_back(*quota_.Admit("a"));
    grants.push_back(*quota_.Admit("b"));
    EXPECT_EQ(quota_.num_peers(), 2u);
  }
  EXPECT_EQ(quota_.num_peers(), 0u);
  EXPECT_EQ(quota_.held_for("a"), 0u);
}

TEST_F(PerPeerQuotaTest, MovedTicketCountsOnce) {
  auto first = quota_.Admit("a");
  ASSERT_THAT(first, IsOk());
  PerPeerQuota::Grant moved = *std::move(first);
  EXPECT_FALSE(moved.empty());
  EXPECT_TRUE(first->empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(quota_.held_for("a"), 1u);
  auto second = quota_.Admit("a");
  ASSERT_THAT(second, IsOk());
  moved = *std::move(second);
  EXPECT_EQ(quota_.held_for("a"), 1u);
}

}  // namespace
}  // namespace hawser::rpc
