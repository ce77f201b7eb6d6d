// Snapshots of tables on several servers.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/table_spec.h"
#include "ps/table_service.h"
#include "ps/testing/table_test_fixture.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

class TableSnapshotTest : public TableTestFixture {};

TEST_F(TableSnapshotTest, SnapshotRestoresOntoOtherNumbersOfServers) {
  const TableSpec spec{.name = "a/b",
                       .width = 3,
                       .rule = {"Adagrad", {{"lr", 0.1}}},
                       .initializer = Initializer::Normal(0, 1)};
  const Table table = Create(spec);
  const std::vector<int64_t> keys = OrderedKeysBelow(500);
  const auto train = [&](const Table& trained) {
    std::vector<float> gradients(keys.size() * 3);
    for (size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = static_cast<float>(i % 7) - 3;
    }
    ASSERT_THAT(
        trained.Push(Keys(keys), Tensor::FromVector(gradients, {500, 3}))
            .Wait(),
        IsOk());
  };
  train(table);
  const absl::StatusOr<TableSize> saved = table.Save("step-1").Wait();
  ASSERT_THAT(saved, IsOk());
  EXPECT_EQ(saved->rows, 500);
  const std::vector<float> rows = Pull(table, keys);
  train(table);
  const std::vector<float> later = Pull(table, keys);
  for (const std::vector<std::string>& servers :
       {std::vector<std::string>{"w1"},
        {"w3", "w2"},
        Servers(),
        {"w3", "w1", "w0", "w2"}}) {
    const absl::StatusOr<Table> restored =
        Table::Restore(job_.agent(0), "a/b", "step-1", servers);
    ASSERT_THAT(restored, IsOk());
    EXPECT_EQ(restored->spec(), table.spec());
    EXPECT_EQ(Rows(*restored), 500);
    EXPECT_EQ(Pull(*restored, keys), rows);
    train(*restored);
    EXPECT_EQ(Pull(*restored, keys), later);
    EXPECT_EQ(Table::Open(job_.agent(0), "a/b")->servers(), servers);
    // Others have dropped it.
    EXPECT_EQ(List().tables_size(),
              std::count(servers.begin(), servers.end(), "w1"));
  }
  EXPECT_THAT(Table::Restore(job_.agent(0), "a/b", "step-1", {"w2"}).status(),
              IsOk());
  // The first handle follows.
  EXPECT_EQ(Pull(table, keys), rows);
}

TEST_F(TableSnapshotTest, BadSnapshotsAreRefused) {
  const Table table = Create({.name = "t", .width = 1});
  Pull(table, OrderedKeysBelow(100));
  for (const char* name : {"", "..", ".x", "a/b", "a b"}) {
    EXPECT_THAT(table.Save(name).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("a snapshot has a name of")))
        << name;
  }
  EXPECT_THAT(Table::Restore(job_.agent(0), "t", "none", Servers()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot read the snapshot")));
  ASSERT_THAT(table.Save("one").Wait(), IsOk());
  EXPECT_THAT(Table::Restore(job_.agent(0), "u", "one", Servers()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("does not have table \"u\"")));
  // A server's file is missing.
  const std::string file = Snapshots() + "/one/t.341-341.rows";
  ASSERT_TRUE(std::filesystem::remove(file));
  EXPECT_THAT(Table::Restore(job_.agent(0), "t", "one", {"w1"}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("does not have shard 341")));
  // It comes from another snapshot.
  ASSERT_THAT(table.Save("two").Wait(), IsOk());
  std::filesystem::copy_file(Snapshots() + "/two/t.341-341.rows", file);
  EXPECT_THAT(Table::Restore(job_.agent(0), "t", "one", {"w1"}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("are of different snapshots")));
  // The table is as before.
  EXPECT_EQ(Rows(table), 100);
}

class TableIncrementTest : public TableTestFixture {
 protected:
  TableIncrementTest() { std::filesystem::remove_all(Snapshots()); }

  void Push(int64_t begin, int64_t end) {
    std::vector<int64_t> keys;
    for (int64_t key = begin; key < end; ++key) keys.push_back(key);
    ASSERT_THAT(
        table_->Push(Keys(keys), Tensor::Full({end - begin, 2}, -1)).Wait(),
        IsOk());
  }
  std::vector<float> RowsOn(const std::string& snapshot,
                            const std::vector<std::string>& servers) {
    const absl::StatusOr<Table> restored =
        Table::Restore(job_.agent(0), "t", snapshot, servers);
    EXPECT_THAT(restored, IsOk());
    return restored.ok() ? Pull(*restored, kKeys) : std::vector<float>();
  }
  // The file of the second server.
  static std::string FileOf(const std::string& snapshot) {
    return Snapshots() + "/" + snapshot + "/t.341-341.rows";
  }

  const std::vector<int64_t> kKeys = OrderedKeysBelow(600);
  std::unique_ptr<Table> table_;

  void SetUp() override {
    TableTestFixture::SetUp();
    table_ = std::make_unique<Table>(
        Create({.name = "t", .width = 2, .rule = {"Adagrad", {{"lr", 0.1}}}}));
  }
};

// Also after a save that failed on one of the servers.
TEST_F(TableIncrementTest, IncrementsHaveWhatChangedAndRestoreOntoAnyServers) {
  Push(0, 500);
  ASSERT_THAT(table_->Save("full").Wait(), IsOk());
  Push(100, 150);
  std::filesystem::create_directories(FileOf("failed") + "/in-the-way");
  EXPECT_FALSE(table_->Save("failed", {.base = "full"}).Wait().ok());
  // Servers that have a part of it do not help: the base is not complete.
  EXPECT_FALSE(table_->Save("on-failed", {.base = "failed"}).Wait().ok());
  Push(490, 600);
  const absl::StatusOr<TableSize> first =
      table_->Save("first", {.base = "full"}).Wait();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->rows, 50 + 110);
  Push(0, 10);
  const absl::StatusOr<TableSize> second =
      table_->Save("second", {.base = "first"}).Wait();
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->rows, 10);
  const std::vector<float> rows = Pull(*table_, kKeys);
  EXPECT_EQ(RowsOn("second", {"w1"}), rows);
  EXPECT_EQ(RowsOn("second", {"w3", "w0"}), rows);
  EXPECT_EQ(RowsOn("second", {"w3", "w1", "w0", "w2"}), rows);
}

TEST_F(TableIncrementTest, ABaseThatServersDoNotShareIsRefused) {
  Push(0, 500);
  EXPECT_THAT(table_->Save("first", {.base = "full"}).Wait(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"full\"")));
  ASSERT_THAT(table_->Save("full").Wait(), IsOk());
  // One server has the file of an earlier save.
  std::filesystem::copy_file(FileOf("full"), FileOf("full") + ".copy");
  ASSERT_THAT(table_->Save("full").Wait(), IsOk());
  std::filesystem::rename(FileOf("full") + ".copy", FileOf("full"));
  EXPECT_THAT(table_->Save("first", {.base = "full"}).Wait(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("are of different saves")));
  ASSERT_THAT(table_->Save("full").Wait(), IsOk());
  ASSERT_THAT(Table::Restore(job_.agent(0), "t", "full", Servers()).status(),
              IsOk());
  EXPECT_THAT(table_->Save("first", {.base = "full"}).Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("save a snapshot without a base")));
}

TEST(TableWithoutDirectoryTest, SaysWhatIsMissing) {
  rpc::TestJob job;
  job.StartAll(1, [](int, rpc::AgentOptions& options) {
    options.services.push_back(std::make_unique<TableService>());
  });
  const Table table =
      *Table::Create(job.agent(0), {.name = "t", .width = 1}, {"w0"});
  EXPECT_THAT(table.Save("one").Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("snapshot_directory")));
}

}  // namespace
}  // namespace hawser::ps
