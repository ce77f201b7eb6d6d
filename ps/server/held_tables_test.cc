#include "ps/server/held_tables.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/route/moved_table.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_route.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TableRoute Route(int64_t version) { return {version, {"ps0", "ps1"}}; }

std::unique_ptr<SparseTable> Rows() {
  return *SparseTable::Create(
      {.name = "a/b", .width = 1, .rule = {"SGD", {{"lr", 1}}}},
      {.num_partitions = 2});
}

// A server whose process ends and starts again, with a store that records a
// version of its table "a/b".
class HeldTablesTest : public testing::Test {
 protected:
  HeldTablesTest() {
    std::filesystem::remove_all(path_);
    Start();
  }

  void Start() {
    tables_.reset();
    tables_ = std::make_unique<HeldTables>(/*max_tables=*/2,
                                           PushLogging::kWrite, nullptr);
    ASSERT_THAT(
        tables_->Recover(
            path_, {},
            [this](const std::string&) -> absl::StatusOr<RecordedTable> {
              return recorded_;
            }),
        IsOk());
  }

  void Add(int64_t version) {
    ASSERT_THAT(
        tables_->Add("a/b", Route(version),
                     [] {
                       return absl::StatusOr<std::unique_ptr<SparseTable>>(
                           Rows());
                     }),
        IsOk());
  }
  absl::Status Prepare(int64_t version) {
    return tables_->Prepare(Rows(), Route(version));
  }

  // Adds 1 to the row of key 1, by a request for this version.
  absl::Status Push(int64_t version) {
    const absl::StatusOr<HeldTables::Held> held = tables_->Find("a/b", version);
    if (!held.ok()) return held.status();
    const std::vector<uint64_t> keys = {1};
    const std::vector<float> gradients = {-1};
    return held->table
        ->Push({{rpc::Incarnation{7}, ++sequence_}, {1}, keys, gradients},
               *held->table->table().SplitOrdered(keys))
        .status();
  }
  // The version that is here, and the row. -1: none.
  std::pair<int64_t, float> Here() {
    const auto held = tables_->FindHeld("a/b", 0);
    if (!held.ok()) return {-1, 0};
    const uint64_t key = 1;
    float row = 0;
    EXPECT_THAT(held->table->table().Pull({&key, 1}, {&row, 1}), IsOk());
    return {held->route.version, row};
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/held_tables");
  RecordedTable recorded_;
  std::unique_ptr<HeldTables> tables_;
  uint64_t sequence_ = 0;
};

TEST_F(HeldTablesTest, ARequestForAnotherVersionIsRefusedWithTheRoute) {
  EXPECT_THAT(Push(1), StatusIs(absl::StatusCode::kNotFound));
  Add(2);
  EXPECT_THAT(Push(2), IsOk());
  EXPECT_THAT(Push(0), IsOk());
  for (const int64_t version : {1, 3}) {
    const absl::Status refused = Push(version);
    EXPECT_THAT(refused,
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("knows version 2 on 'ps0', 'ps1'")));
    EXPECT_EQ(MovedRouteOf(refused), Route(2));
  }
  EXPECT_EQ(Here(), std::pair(int64_t{2}, 2.0f));
}

TEST_F(HeldTablesTest, APreparedVersionIsTakenByItsFirstRequest) {
  Add(1);
  ASSERT_THAT(Push(1), IsOk());
  ASSERT_THAT(Prepare(2), IsOk());
  ASSERT_THAT(Push(1), IsOk());
  EXPECT_EQ(Here(), std::pair(int64_t{1}, 2.0f));
  ASSERT_THAT(Push(2), IsOk());
  EXPECT_EQ(Here(), std::pair(int64_t{2}, 1.0f));
  EXPECT_EQ(MovedRouteOf(Push(1)), Route(2));
  // A late repeat of the restore changes nothing.
  EXPECT_EQ(MovedRouteOf(Prepare(2)), Route(2));
  EXPECT_EQ(MovedRouteOf(Prepare(1)), Route(2));
  EXPECT_EQ(Here(), std::pair(int64_t{2}, 1.0f));
}

TEST_F(HeldTablesTest, APreparedVersionIsGivenUpOrReplaced) {
  Add(1);
  ASSERT_THAT(Prepare(2), IsOk());
  // Of another restore.
  EXPECT_THAT(tables_->GiveUp("a/b", 3), IsOk());
  ASSERT_THAT(Prepare(3), IsOk());
  EXPECT_EQ(MovedRouteOf(Push(2)), Route(1));
  EXPECT_THAT(tables_->GiveUp("a/b", 3), IsOk());
  EXPECT_EQ(MovedRouteOf(Push(3)), Route(1));
  EXPECT_THAT(Push(1), IsOk());
  EXPECT_TRUE(std::filesystem::exists(path_ + "/a+b.1"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.2"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.3"));
}

TEST_F(HeldTablesTest, ADroppedTableSaysWhereItIs) {
  Add(1);
  ASSERT_THAT(Push(1), IsOk());
  ASSERT_THAT(tables_->Drop("a/b", Route(4)), IsOk());
  EXPECT_EQ(MovedRouteOf(Push(1)), Route(4));
  EXPECT_EQ(MovedRouteOf(Push(0)), Route(4));
  // A client that has read the store before the restore does not create it
  // again.
  EXPECT_EQ(MovedRouteOf(
                tables_
                    ->Add("a/b", Route(1),
                          [] {
                            return absl::StatusOr<std::unique_ptr<SparseTable>>(
                                Rows());
                          })
                    .status()),
            Route(4));
  // It comes back, and a late message does not drop it again.
  ASSERT_THAT(Prepare(5), IsOk());
  ASSERT_THAT(tables_->Find("a/b", 5), IsOk());
  ASSERT_THAT(tables_->Drop("a/b", Route(4)), IsOk());
  EXPECT_EQ(Here().first, 5);
  // Without a record of the store, as by the end of a job.
  Start();
  EXPECT_EQ(Here().first, 5);
}

TEST_F(HeldTablesTest, AServerThatStartsAgainHasTheRecordedVersion) {
  recorded_.route = Route(1);
  Add(1);
  ASSERT_THAT(Push(1), IsOk());
  recorded_.reserved = 2;
  ASSERT_THAT(Prepare(2), IsOk());
  // The restore was not recorded, but may be yet.
  Start();
  EXPECT_EQ(Here(), std::pair(int64_t{1}, 1.0f));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/a+b.2"));
  recorded_.reserved = 3;
  ASSERT_THAT(Prepare(3), IsOk());
  // It was, but the server has not taken it.
  recorded_.route = Route(3);
  Start();
  EXPECT_EQ(Here(), std::pair(int64_t{3}, 0.0f));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.1"));
  ASSERT_THAT(Push(3), IsOk());
  Start();
  EXPECT_EQ(Here(), std::pair(int64_t{3}, 1.0f));
}

// All servers have prepared a version before it is recorded. One of them starts
// again before that.
TEST_F(HeldTablesTest, WhatWasPreparedSurvivesTheEndOfTheServer) {
  recorded_.reserved = 5;
  ASSERT_THAT(Prepare(5), IsOk());
  Start();
  ASSERT_THAT(Push(5), IsOk());
  EXPECT_EQ(Here(), std::pair(int64_t{5}, 1.0f));
  ASSERT_THAT(Prepare(6), IsOk());
  // It was given up, and a later version was recorded.
  recorded_ = {.route = Route(7), .reserved = 7};
  Start();
  EXPECT_EQ(Here().first, -1);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.5"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.6"));
}

TEST_F(HeldTablesTest, ATableThatMovedWhileItsServerWasDeadIsNotRecovered) {
  Add(1);
  ASSERT_THAT(Push(1), IsOk());
  recorded_.route = {2, {"ps7"}};
  Start();
  EXPECT_EQ(Here().first, -1);
  EXPECT_EQ(MovedRouteOf(Push(1)), recorded_.route);
  // Not without the store either.
  recorded_ = {};
  Start();
  EXPECT_THAT(Push(1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(HeldTablesTest, ARemovalThatWasInterruptedIsFinished) {
  Add(1);
  ASSERT_THAT(Push(1), IsOk());
  tables_.reset();
  // The end of the process after the first step.
  std::filesystem::rename(path_ + "/a+b.1", path_ + "/a+b.1.removed");
  Start();
  EXPECT_EQ(Here().first, -1);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a+b.1.removed"));
}

// The version that was served is known by what is on disk.
TEST_F(HeldTablesTest, AJobWithANewStoreKeepsWhatWasServed) {
  Add(4);
  ASSERT_THAT(Push(4), IsOk());
  ASSERT_THAT(Prepare(5), IsOk());
  Start();
  EXPECT_EQ(Here(), std::pair(int64_t{4}, 1.0f));
  ASSERT_THAT(Prepare(5), IsOk());
  ASSERT_THAT(Push(5), IsOk());
  Start();
  EXPECT_EQ(Here(), std::pair(int64_t{5}, 1.0f));
}

TEST_F(HeldTablesTest, TablesAreLimited) {
  for (const char* name : {"x", "y"}) {
    EXPECT_THAT(tables_->Add(name, Route(1),
                             [&] {
                               return SparseTable::Create(
                                   {.name = name, .width = 1}, {});
                             }),
                IsOk());
  }
  EXPECT_THAT(Prepare(1), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace hawser::ps
