// Tables with rows on the disks of servers.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/testing/table_test_fixture.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

class TableDiskTest : public TableTestFixture {
 protected:
  // Workers 1 and 2 have a disk, worker 3 has none.
  void SetUp() override {
    std::filesystem::remove_all(Disk());
    job_.StartAll(4, [](int rank, rpc::AgentOptions& options) {
      TableServiceOptions tables{.snapshot_directory = Snapshots()};
      if (rank == 1 || rank == 2) {
        tables.disk = std::make_shared<RocksDbStorage>(Disk());
      }
      options.services.push_back(
          std::make_unique<TableService>(std::move(tables)));
    });
  }

  static std::string Disk() { return Snapshots() + ".disk"; }

  static int NumDatabases() {
    int count = 0;
    for (const char* worker : {"w1", "w2"}) {
      for (const auto& entry : std::filesystem::directory_iterator(
               absl::StrCat(Disk(), "/", worker))) {
        count += entry.is_directory() ? 1 : 0;
      }
    }
    return count;
  }
};

TEST_F(TableDiskTest, RowsAreThoseOfATableInMemory) {
  TableSpec spec{.name = "memory",
                 .width = 2,
                 .rule = {"RowWiseAdagrad", {{"lr", 0.1}}},
                 .initializer = Initializer::Uniform(-1, 1)};
  const Table memory = *Table::Create(job_.agent(0), spec, {"w1", "w2"});
  spec.name = "disk";
  spec.storage = TableStorage::RocksDb(100);
  const Table disk = *Table::Create(job_.agent(0), spec, {"w1", "w2"});
  EXPECT_EQ(NumDatabases(), 2);
  std::vector<int64_t> all(1000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> keys(50);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % all.size());
    const Tensor gradients = Tensor::Full({50, 2}, 0.01f * round);
    for (const Table& table : {memory, disk}) {
      ASSERT_THAT((round % 2 == 0 ? table.Push(Keys(keys), gradients)
                                  : table.PushSums(*Keys(keys).Reshape({50, 1}),
                                                   gradients))
                      .Wait(),
                  IsOk());
    }
    if (round == 30) {
      ASSERT_THAT(disk.Save("s").Wait(), IsOk());
      ASSERT_THAT(memory.Save("s").Wait(), IsOk());
      ASSERT_THAT(disk.Push(Keys(keys), gradients).Wait(), IsOk());
      ASSERT_THAT(
          Table::Restore(job_.agent(0), "disk", "s", {"w1", "w2"}).status(),
          IsOk());
      EXPECT_EQ(NumDatabases(), 2);
    }
  }
  EXPECT_EQ(Pull(disk, all, {.create_missing = false}),
            Pull(memory, all, {.create_missing = false}));
  EXPECT_EQ(Rows(disk), Rows(memory));
}

TEST_F(TableDiskTest, AServerWithoutADiskRefusesTheTable) {
  EXPECT_THAT(
      Table::Create(
          job_.agent(0),
          {.name = "t", .width = 2, .storage = TableStorage::RocksDb(100)},
          {"w3"})
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("ps::TableServiceOptions::disk")));
}

}  // namespace
}  // namespace hawser::ps
