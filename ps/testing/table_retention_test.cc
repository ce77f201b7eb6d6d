// Tables whose rows are removed, on servers.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/server/table_server.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_limits.h"
#include "ps/testing/table_test_fixture.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::testing::Contains;
using ::testing::Pair;

class TableRetentionTest : public TableTestFixture {};

TEST_F(TableRetentionTest, AllServersTogetherHoldTheRowsOfTheTable) {
  const TableSpec spec{.name = "t",
                       .width = 1,
                       .rule = {"SGD", {{"lr", 1}}},
                       .retention = {.admission_pushes = 2, .max_rows = 600}};
  const Table table = Create(spec);
  EXPECT_EQ(Table::Open(job_.agent(0), "t", Servers())->spec(), table.spec());
  int64_t pushed = 0;
  for (int64_t begin = 0; begin < 5000; begin += 500) {
    std::vector<int64_t> keys(500);
    for (int64_t i = 0; i < 500; ++i) keys[i] = begin + i;
    for (int i = 0; i < 2; ++i) {
      // A pull creates no row.
      EXPECT_EQ(Pull(table, keys), std::vector<float>(500, 0));
      const Tensor gradients = Tensor::Full({500, 1}, -1);
      ASSERT_THAT(
          (i == 0 ? table.Push(Keys(keys), gradients)
                  : table.PushSums(*Keys(keys).Reshape({500, 1}), gradients))
              .Wait(),
          IsOk());
      pushed += 500;
    }
  }
  const int64_t rows = Rows(table);
  EXPECT_LE(rows, 600);
  EXPECT_GE(rows, 550);
  // Each update is in a row, was lost with its row, or was dropped.
  int64_t counted = rows;
  for (const char* number : {"ps.rows_evicted", "ps.updates_not_admitted",
                             "ps.updates_without_room"}) {
    for (int server = 1; server <= 3; ++server) {
      counted += std::stoll(job_.agent(server).DebugInfo()[number]);
    }
  }
  EXPECT_EQ(counted, pushed);
}

// Rows age by the clock of the agent: when the table was created, restored and
// recovered.
TEST(TableServerTest, RowsExpireByTheClockOfTheServer) {
  const std::string directory = testing::TempDir() + "/expiring";
  std::filesystem::remove_all(directory);
  async::SimulatedClock clock;
  const uint64_t key = 1;
  const auto row = [&](TableServer& server) {
    float weight = 0;
    EXPECT_THAT((*server.Find("t", /*version=*/0))
                    ->table()
                    .Pull({&key, 1}, {&weight, 1}),
                IsOk());
    return weight;
  };
  const auto start = [&] {
    auto server = std::make_unique<TableServer>(TableLimits{}, directory,
                                                PushLogging::kWrite);
    // The store of a new job knows no tables.
    EXPECT_THAT(
        server->Start("w0", clock,
                      [](const std::string&) {
                        return absl::StatusOr<RecordedTable>(absl::in_place);
                      }),
        IsOk());
    return server;
  };
  auto server = start();
  v1::CreateTableRequest create;
  *create.mutable_table() =
      ToProto(TableSpec{.name = "t",
                        .width = 1,
                        .rule = {"SGD", {{"lr", 1}}},
                        .retention = {.ttl = absl::Seconds(10)}});
  create.mutable_shards()->set_num_shards(1024);
  ASSERT_THAT(server->Create(create), IsOk());
  const std::shared_ptr<LoggedTable> table = *server->Find("t", /*version=*/0);
  const float gradient = -1;
  ASSERT_THAT(
      table->Push({{rpc::Incarnation{7}, 1}, {1}, {&key, 1}, {&gradient, 1}},
                  *table->table().SplitOrdered({&key, 1})),
      IsOk());
  clock.AdvanceBy(absl::Seconds(6));
  v1::SaveTableRequest save;
  save.set_table("t");
  save.set_name("s");
  ASSERT_THAT(server->Save(save), IsOk());
  clock.AdvanceBy(absl::Seconds(4));
  EXPECT_EQ(row(*server), 1);
  clock.AdvanceBy(absl::Seconds(1));
  EXPECT_EQ(row(*server), 0);

  v1::RestoreTableRequest restore;
  restore.set_table("t");
  restore.set_name("s");
  restore.mutable_route()->set_version(2);
  restore.mutable_route()->add_servers("ps0");
  ASSERT_THAT(server->Restore(restore), IsOk());
  restore.set_commit(true);
  ASSERT_THAT(server->Restore(restore), IsOk());
  clock.AdvanceBy(absl::Seconds(2));
  server = start();
  clock.AdvanceBy(absl::Seconds(4));
  EXPECT_EQ(row(*server), 1);
  clock.AdvanceBy(absl::Seconds(1));
  EXPECT_EQ(row(*server), 0);
  EXPECT_THAT(server->DebugNumbers(), Contains(Pair("rows", 1)));
}

}  // namespace
}  // namespace hawser::ps
