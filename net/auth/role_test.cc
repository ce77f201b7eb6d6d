#include "net/auth/role.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/identity.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(RoleTest, UriHoldsTheRole) {
  EXPECT_EQ(RoleUri("ps"), "hawser-role:ps");
  EXPECT_THAT(ParseRoleUri(RoleUri("ps")),
              IsOkAndHolds(Optional(std::string("ps"))));
  for (const char* other : {"", "hawser://job/ps", "hawser-job:job"}) {
    EXPECT_THAT(ParseRoleUri(other), IsOkAndHolds(std::nullopt));
  }
  for (const std::string& bad :
       {std::string(), std::string("a,b"), std::string("a\0b", 3),
        std::string(128, 'a')}) {
    EXPECT_THAT(ParseRoleUri(RoleUri(bad)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(RoleTest, ObserversMayUseWhatListsOneOfTheirRoles) {
  EXPECT_TRUE(MayUse({}, {}));
  EXPECT_TRUE(MayUse({"ps"}, {}));
  EXPECT_FALSE(MayUse({"observer"}, {}));
  EXPECT_FALSE(MayUse({"ps", "observer"}, {}));
  EXPECT_TRUE(MayUse({"observer"}, {"ps", "observer"}));
  EXPECT_TRUE(MayUse({"observer", "ps"}, {"ps"}));
  EXPECT_FALSE(MayUse({}, {"ps"}));
  EXPECT_FALSE(MayUse({"trainer", "admin"}, {"ps"}));
  EXPECT_TRUE(MayUse({"trainer", "ps"}, {"ps"}));
}

TEST(RoleTest, ClaimedRolesMustBeProven) {
  const std::vector<std::string> proven = {"ps", "trainer"};
  EXPECT_THAT(CheckClaimedRoles("w", proven, {}), IsOk());
  EXPECT_THAT(CheckClaimedRoles("w", proven, {"trainer"}), IsOk());
  EXPECT_THAT(CheckClaimedRoles("w", proven, {"trainer", "ps"}), IsOk());
  EXPECT_THAT(CheckClaimedRoles("w", proven, {"ps", "ad\x1bmin"}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("ad\\x1bmin"), HasSubstr("ps, trainer"),
                             Not(HasSubstr("\x1b")))));
  EXPECT_THAT(CheckClaimedRoles("w", {}, {"ps"}),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(CheckClaimedRoles("w", proven, {"ps", "ps", "ps"}),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(RoleTest, CertificateOfAWorkerHasItsRoles) {
  absl::StatusOr<Identity> found =
      FindIdentity({"hawser-role:ps", "https://example.com", "hawser://j/w",
                    "hawser-role:trainer"});
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->worker, "w");
  EXPECT_THAT(found->roles, ElementsAre("ps", "trainer"));
  EXPECT_THAT(FindIdentity({"hawser://j/w"}),
              IsOkAndHolds(Identity{.job = "j", .worker = "w"}));
  EXPECT_THAT(FindIdentity({"hawser-role:ps"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // Must not be treated as a certificate without roles: it may be an
  // observer's.
  EXPECT_THAT(FindIdentity({"hawser://j/w", "hawser-role:an observer"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::net
