#include "ps/route/join_parts.h"

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/route/moved_table.h"
#include "ps/table_route.h"

namespace hawser::ps {
namespace {

using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

class JoinPartsTest : public testing::Test {
 protected:
  std::vector<async::Future<int>> Futures() {
    std::vector<async::Future<int>> futures;
    for (async::Promise<int>& part : parts_) futures.push_back(part.future());
    return futures;
  }

  std::vector<async::Promise<int>> parts_ = std::vector<async::Promise<int>>(3);
};

TEST_F(JoinPartsTest, ReturnsTheValuesInOrder) {
  const auto joined = JoinParts(Futures());
  for (const int i : {2, 0, 1}) {
    EXPECT_FALSE(joined.ready());
    parts_[static_cast<size_t>(i)].Set(i);
  }
  EXPECT_THAT(*joined.Wait(), ElementsAre(0, 1, 2));
}

TEST_F(JoinPartsTest, WaitsForAllAfterAnError) {
  const auto joined = JoinParts(Futures());
  parts_[0].Set(absl::UnavailableError("0"));
  parts_[1].Set(absl::InternalError("1"));
  EXPECT_FALSE(joined.ready());
  parts_[2].Set(2);
  EXPECT_THAT(joined.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(JoinPartsTest, DoesNotWaitForADeadServerOfATableThatHasMoved) {
  const auto joined = JoinParts(Futures());
  parts_[0].Set(0);
  parts_[2].Set(TableMovedError("t", 1, {2, {"ps7"}}));
  ASSERT_TRUE(joined.ready());
  EXPECT_EQ(MovedRouteOf(joined.Wait().status()), (TableRoute{2, {"ps7"}}));
  parts_[1].Set(absl::UnavailableError("it is dead"));
  EXPECT_TRUE(MovedRouteOf(joined.Wait().status()).has_value());
}

TEST(MovedTableTest, ManyServersAreLeftOut) {
  TableRoute route{2, {}};
  for (int i = 0; i < 500; ++i) route.servers.emplace_back("server");
  const absl::Status status = TableMovedError("t", 1, route);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               testing::HasSubstr("500 servers")));
  EXPECT_EQ(MovedRouteOf(status), (TableRoute{2, {}}));
  absl::Status other = absl::FailedPreconditionError("x");
  EXPECT_FALSE(MovedRouteOf(other).has_value());
  other.SetPayload("type.googleapis.com/hawser.v1.TableRoute",
                   absl::Cord("\xff"));
  EXPECT_FALSE(MovedRouteOf(other).has_value());
}

}  // namespace
}  // namespace hawser::ps
