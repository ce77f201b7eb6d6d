#include "ps/table_route.h"

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/table_spec.h"
#include "store/hash/store.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

class TableRouteTest : public testing::Test {
 protected:
  absl::Status Move(int64_t version, std::vector<std::string> servers) {
    return RecordMove(store_, "job", {version, std::move(servers)}, spec_)
        .status();
  }

  store::HashStore store_;
  const TableSpec spec_ = *NormalizeTableSpec({.name = "users", .width = 4});
};

TEST_F(TableRouteTest, TheFirstRecordOfATableStays) {
  EXPECT_THAT(ReadTableRoute(store_, "job", "users"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"users\"")));
  EXPECT_EQ(AwaitTableRoute(store_, "job", "users")->route.version, 0);
  const TableRoute route{3, {"a", "b"}};
  EXPECT_EQ(RecordNewTable(store_, "job", route, spec_)->route, route);
  EXPECT_EQ(RecordNewTable(store_, "job", {1, {"c"}}, spec_)->route, route);
  const auto record = ReadTableRoute(store_, "job", "users");
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->route, route);
  EXPECT_EQ(record->spec, spec_);
  EXPECT_EQ(AwaitTableRoute(store_, "job", "users")->route, route);
  EXPECT_THAT(ReadTableRoute(store_, "other", "users"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadTableRoute(store_, "job", "items"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TableRouteTest, AMoveHasAReservedVersion) {
  // Also of a table that is not recorded.
  EXPECT_EQ(*ReserveVersion(store_, "job", "users", 1), 1);
  EXPECT_THAT(ReadTableRoute(store_, "job", "users"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(*ReserveVersion(store_, "job", "users", 1), 2);
  EXPECT_EQ(*ReserveVersion(store_, "job", "users", 7), 7);
  EXPECT_THAT(Move(2, {"a"}), IsOk());
  EXPECT_EQ(AwaitTableRoute(store_, "job", "users")->reserved, 7);
  EXPECT_EQ(*ReserveVersion(store_, "job", "users", 1), 8);
  const auto before = RecordMove(store_, "job", {8, {"b"}}, spec_);
  ASSERT_THAT(before, IsOk());
  EXPECT_EQ(before->route, (TableRoute{2, {"a"}}));
  // A restore that took longer than a later one.
  EXPECT_THAT(Move(7, {"c"}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(ReadTableRoute(store_, "job", "users")->route,
            (TableRoute{8, {"b"}}));
}

TEST_F(TableRouteTest, NoTwoRestoresGetTheSameVersion) {
  std::vector<int64_t> versions(8);
  std::vector<std::thread> threads;
  for (int64_t& version : versions) {
    threads.emplace_back(
        [&] { version = *ReserveVersion(store_, "job", "users", 1); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<int64_t>(versions.begin(), versions.end()).size(), 8u);
}

TEST_F(TableRouteTest, AWatchEndsWithAHigherVersion) {
  const auto watch = [&](int64_t version) {
    return WhenTablesMove(store_, "job", {{"other", 5}, {"users", version}});
  };
  const auto early = watch(0);
  EXPECT_FALSE(early.ready());
  ASSERT_THAT(Move(1, {"a"}), IsOk());
  ASSERT_EQ(early.Wait()->size(), 1u);
  EXPECT_EQ((*early.Wait())[0].route, (TableRoute{1, {"a"}}));
  EXPECT_EQ((*early.Wait())[0].spec.name, "users");
  EXPECT_TRUE(watch(0).ready());
  const auto moved = watch(1);
  // Changes the record, but not the route.
  ASSERT_THAT(ReserveVersion(store_, "job", "users", 1), IsOk());
  // No record that can be read.
  ASSERT_THAT(store_.Set("ps/job/tables/other", "\xff\xff"), IsOk());
  EXPECT_FALSE(moved.ready());
  ASSERT_THAT(Move(2, {"b"}), IsOk());
  ASSERT_EQ(moved.Wait()->size(), 1u);
  EXPECT_EQ((*moved.Wait())[0].route, (TableRoute{2, {"b"}}));
  const auto cancelled = watch(2);
  EXPECT_TRUE(cancelled.Cancel());
  ASSERT_THAT(Move(3, {"c"}), IsOk());
  EXPECT_THAT(cancelled.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(TableRouteTest, AnUnreadableRecordIsReported) {
  ASSERT_THAT(store_.Set("ps/job/tables/users", "\xff\xff"), IsOk());
  EXPECT_THAT(ReadTableRoute(store_, "job", "users"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Move(1, {"a"}), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hawser::ps
