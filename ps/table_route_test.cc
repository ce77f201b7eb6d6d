#include "ps/table_route.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TableRouteTest : public testing::Test {
 protected:
  store::HashStore store_;
};

TEST_F(TableRouteTest, EachChangeHasTheNextVersion) {
  EXPECT_THAT(ReadTableRoute(store_, "job", "users"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"users\"")));
  EXPECT_EQ(WriteTableRoute(store_, "job", "users", {"a", "b"})->version, 1);
  EXPECT_EQ(WriteTableRoute(store_, "job", "users", {"a", "b"})->version, 1);
  EXPECT_EQ(WriteTableRoute(store_, "job", "users", {"b", "a"})->version, 2);
  const auto route = ReadTableRoute(store_, "job", "users");
  ASSERT_THAT(route, IsOk());
  EXPECT_EQ(route->version, 2);
  EXPECT_THAT(route->servers, ElementsAre("b", "a"));
  EXPECT_THAT(ReadTableRoute(store_, "other", "users"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadTableRoute(store_, "job", "items"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TableRouteTest, NoConcurrentChangeIsLost) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_THAT(
          WriteTableRoute(store_, "job", "users", {absl::StrCat("ps", i)}),
          IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadTableRoute(store_, "job", "users")->version, 8);
}

TEST_F(TableRouteTest, AnUnreadableRecordIsReported) {
  ASSERT_THAT(store_.Set("ps/job/tables/users", "\xff\xff"), IsOk());
  EXPECT_THAT(ReadTableRoute(store_, "job", "users"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(WriteTableRoute(store_, "job", "users", {"a"}),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hawser::ps
