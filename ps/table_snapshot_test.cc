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

// The client waits for its restart until the timeout.
}  // namespace
}  // namespace hawser::ps
