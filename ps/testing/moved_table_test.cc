// Handles of tables that are restored onto other servers.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/dense_table.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/worker_clock.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Servers = std::vector<std::string>;

// Workers 0 and 1 use tables on the others, which share a directory.
class MovedTableTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string directory = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory);
    job_.StartAll(7, [&](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>(
          TableServiceOptions{.snapshot_directory = directory}));
    });
  }

  static TableSpec Spec() {
    return {.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}};
  }
  Table Create(const TableSpec& spec, Servers servers) {
    absl::StatusOr<Table> table =
        Table::Create(job_.agent(0), spec, std::move(servers));
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }
  void Save(const Table& table, const std::string& name,
            const std::string& base = "") {
    ASSERT_THAT(table.Save(name, {.base = base}).Wait(), IsOk());
  }
  Table Restore(const std::string& name, Servers servers) {
    absl::StatusOr<Table> table =
        Table::Restore(job_.agent(1), "t", name, std::move(servers));
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  // Adds 1 to the rows `first` to `first + count - 1`.
  static absl::Status Push(const Table& table, int64_t first, int64_t count) {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < count; ++i) keys.push_back(first + i);
    return table
        .Push(Tensor::FromVector(keys, {count}), Tensor::Full({count, 1}, -1))
        .Wait();
  }
  static std::vector<float> Pull(const Table& table, int64_t count) {
    const auto rows =
        table.Pull(Tensor::Arange(count, {.dtype = tensor::DType::kI64}))
            .Wait();
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->ToVector<float>() : std::vector<float>();
  }

  rpc::TestJob job_;
};

TEST_F(MovedTableTest, AHandleFollowsItsTable) {
  const Table table = Create(Spec(), {"w2", "w3", "w4"});
  const Table copy = table;
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  Save(table, "one");
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  // Away during two moves, and back to one of the first servers.
  Restore("one", {"w5"});
  Restore("one", {"w6", "w2"});
  EXPECT_EQ(Pull(table, 50), std::vector<float>(50, 1));
  EXPECT_THAT(table.servers(), ElementsAre("w6", "w2"));
  EXPECT_THAT(copy.servers(), ElementsAre("w6", "w2"));
  ASSERT_THAT(Push(copy, 0, 50), IsOk());
  // The same servers have another version as well.
  Save(table, "two");
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  Restore("two", {"w6", "w2"});
  EXPECT_EQ(Pull(copy, 50), std::vector<float>(50, 2));
  EXPECT_EQ(table.Size().Wait()->rows, 50);
  const auto opened = Table::Open(job_.agent(0), "t");
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(Pull(*opened, 50), std::vector<float>(50, 2));
  // Where it was before, it can neither be created nor used.
  EXPECT_THAT(Table::Create(job_.agent(0), Spec(), {"w2", "w3", "w4"}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists on other servers: 'w6', 'w2'")));
}

TEST_F(MovedTableTest, IncrementsBeginAnewAfterAMove) {
  const Table table = Create(Spec(), {"w2", "w3"});
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  Save(table, "one");
  ASSERT_THAT(Push(table, 0, 10), IsOk());
  Save(table, "two", "one");
  Restore("two", {"w3", "w2"});
  // The new version knows no snapshots.
  EXPECT_THAT(table.Save("three", {.base = "two"}).Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("before the table came to this server")));
  Save(table, "three");
  ASSERT_THAT(Push(table, 5, 10), IsOk());
  const auto four = table.Save("four", {.base = "three"}).Wait();
  ASSERT_THAT(four, IsOk());
  EXPECT_EQ(four->rows, 10);
  const std::vector<float> rows = Pull(table, 50);
  EXPECT_EQ(rows[0], 2);
  EXPECT_EQ(rows[5], 3);
  EXPECT_EQ(rows[14], 2);
  EXPECT_EQ(rows[15], 1);
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  EXPECT_EQ(Pull(Restore("four", {"w4", "w5", "w6"}), 50), rows);
  EXPECT_EQ(Pull(table, 50), rows);
}

TEST_F(MovedTableTest, TrainersGoOnWhileTheirTableMoves) {
  constexpr int64_t kPushKeys = 20;
  const Table table = Create(Spec(), {"w2", "w3", "w4"});
  // Each push has keys of its own: a row counts how often it was applied.
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  async::Mutex mutex;
  std::vector<int64_t> done;
  std::vector<std::thread> trainers;
  for (int i = 0; i < 4; ++i) {
    trainers.emplace_back([&, i] {
      const auto handle = Table::Open(job_.agent(i % 2), "t");
      ASSERT_THAT(handle, IsOk());
      while (!stop) {
        const int64_t push = next++;
        ASSERT_THAT(Push(*handle, push * kPushKeys, kPushKeys), IsOk());
        ASSERT_EQ(Pull(*handle, 30).size(), 30u);
        const async::MutexLock lock(&mutex);
        done.push_back(push);
      }
    });
  }
  // The pushes that are acknowledged, once there are more of them.
  const auto more = [&] {
    const size_t least = [&] {
      const async::MutexLock lock(&mutex);
      return done.size() + 10;
    }();
    while (true) {
      {
        const async::MutexLock lock(&mutex);
        if (done.size() >= least) return done;
      }
      std::this_thread::yield();
    }
  };
  std::vector<int64_t> kept;
  int64_t first_of_version = 0;
  const std::vector<Servers> moves = {
      {"w5"}, {"w6", "w2"}, {"w2", "w3", "w4", "w5", "w6"}};
  for (size_t i = 0; i < moves.size(); ++i) {
    const std::string base = absl::StrCat("base", i);
    const std::string increment = absl::StrCat("increment", i);
    more();
    Save(table, base);
    // What this version has: what it began with, and later pushes.
    for (const int64_t push : more()) {
      if (push >= first_of_version) kept.push_back(push);
    }
    Save(table, increment, base);
    more();
    Restore(increment, moves[i]);
    first_of_version = next;
  }
  for (const int64_t push : more()) {
    if (push >= first_of_version) kept.push_back(push);
  }
  stop = true;
  for (std::thread& trainer : trainers) trainer.join();
  const std::vector<float> rows = Pull(table, next * kPushKeys);
  for (const float row : rows) EXPECT_LE(row, 1);
  for (const int64_t push : kept) {
    for (int64_t i = 0; i < kPushKeys; ++i) {
      EXPECT_EQ(rows[static_cast<size_t>(push * kPushKeys + i)], 1) << push;
    }
  }
}

// No other server can tell of the move.
TEST_F(MovedTableTest, RequestsToALostServerFollowTheTable) {
  const Table table = Create(Spec(), {"w2"});
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  Save(table, "one");
  job_.owned(2).reset();
  const Tensor keys = Tensor::Arange(50, {.dtype = tensor::DType::kI64});
  const auto pull = table.Pull(keys);
  const auto push = table.Push(keys, Tensor::Full({50, 1}, -1));
  EXPECT_FALSE(pull.ready());
  Restore("one", {"w3"});
  EXPECT_THAT(push.Wait(), IsOk());
  ASSERT_THAT(pull.Wait(), IsOk());
  EXPECT_GE(pull.Wait()->ToVector<float>()[0], 1);
  EXPECT_EQ(Pull(table, 50), std::vector<float>(50, 2));
  // A handle that learns of both servers when they are lost.
  const auto opened = Table::Open(job_.agent(1), "t");
  ASSERT_THAT(opened, IsOk());
  Save(table, "two");
  job_.owned(3).reset();
  const auto again = opened->Pull(keys);
  Restore("two", {"w4"});
  ASSERT_THAT(again.Wait(), IsOk());
  EXPECT_EQ(again.Wait()->ToVector<float>(), std::vector<float>(50, 2));
}

TEST_F(MovedTableTest, ClocksEndWhenATableLeavesALostServer) {
  TableSpec spec = Spec();
  spec.consistency = Consistency::Synchronous();
  const Table table = Create(spec, {"w2"});
  Save(table, "one");
  {
    auto clock = WorkerClock::Join({table});
    ASSERT_THAT(clock, IsOk());
    job_.owned(2).reset();
    const auto push =
        table.Push(Tensor::Arange(5, {.dtype = tensor::DType::kI64}),
                   Tensor::Full({5, 1}, -1));
    EXPECT_FALSE(push.ready());
    Restore("one", {"w3"});
    EXPECT_THAT(push.Wait(), StatusIs(absl::StatusCode::kAborted,
                                      HasSubstr("join them again")));
  }
  EXPECT_THAT(WorkerClock::Join({table}), IsOk());
}

TEST_F(MovedTableTest, DenseTablesFollow) {
  const auto dense = DenseTable::Create(
      job_.agent(0),
      {.name = "t", .tensors = {{"w", {30, 50}}}, .rule = {"SGD", {{"lr", 1}}}},
      {"w2", "w3"});
  ASSERT_THAT(dense, IsOk());
  ASSERT_THAT(dense->Assign({Tensor::Full({30, 50}, 5)}).Wait(), IsOk());
  Save(dense->table(), "one");
  Restore("one", {"w4", "w5", "w6"});
  const auto values = dense->PushPull({Tensor::Full({30, 50}, -1)}).Wait();
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ((*values)[0].ToVector<float>(), std::vector<float>(1500, 6));
}

TEST_F(MovedTableTest, SumsFollow) {
  const Table table = Create(Spec(), {"w2", "w3"});
  const Tensor bags =
      Tensor::FromVector(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
  ASSERT_THAT(table.PushSums(bags, Tensor::Full({2, 1}, -1)).Wait(), IsOk());
  Save(table, "one");
  Restore("one", {"w4"});
  ASSERT_THAT(table.PushSums(bags, Tensor::Full({2, 1}, -1)).Wait(), IsOk());
  Restore("one", {"w3", "w6"});
  const auto sums = table.PullSums(bags).Wait();
  ASSERT_THAT(sums, IsOk());
  EXPECT_THAT(sums->ToVector<float>(), ElementsAre(2, 2));
}

TEST_F(MovedTableTest, WorkersJoinTheClocksOfTheRestoredTableAgain) {
  TableSpec spec = Spec();
  spec.consistency = Consistency::BoundedStaleness(1);
  const Table table = Create(spec, {"w2", "w3"});
  {
    auto clock = WorkerClock::Join({table});
    ASSERT_THAT(clock, IsOk());
    ASSERT_THAT(Push(table, 0, 50), IsOk());
    ASSERT_THAT(clock->Advance(), IsOk());
    Save(table, "one");
    Restore("one", {"w4"});
    EXPECT_THAT(Push(table, 0, 50), StatusIs(absl::StatusCode::kAborted,
                                             HasSubstr("join them again")));
    EXPECT_THAT(clock->Advance(), StatusIs(absl::StatusCode::kAborted));
  }
  auto clock = WorkerClock::Join({table});
  ASSERT_THAT(clock, IsOk());
  ASSERT_THAT(Push(table, 0, 50), IsOk());
  ASSERT_THAT(clock->Advance(), IsOk());
  EXPECT_EQ(Pull(table, 50), std::vector<float>(50, 2));
  Restore("one", {"w5", "w6"});
  // Of a membership that has ended with its version.
  EXPECT_THAT(clock->Leave().Wait(), IsOk());
  // A join is not refused because the table has moved.
  EXPECT_THAT(WorkerClock::Join({table}), IsOk());
}

TEST_F(MovedTableTest, ATableWithAnotherDescriptionIsOpenedAgain) {
  const Table table = Create(Spec(), {"w2"});
  TableSpec other = Spec();
  other.width = 3;
  {
    // Of another job that has used the same directory.
    rpc::TestJob before;
    before.StartAll(1, [&](int, rpc::AgentOptions& options) {
      options.services.push_back(
          std::make_unique<TableService>(TableServiceOptions{
              .snapshot_directory =
                  absl::StrCat(testing::TempDir(),
                               "/ATableWithAnotherDescriptionIsOpenedAgain")}));
    });
    const auto wide = Table::Create(before.agent(0), other, {"w0"});
    ASSERT_THAT(wide, IsOk());
    Save(*wide, "wide");
  }
  Restore("wide", {"w3"});
  EXPECT_THAT(Push(table, 0, 5), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("open it again")));
  EXPECT_EQ(Table::Open(job_.agent(0), "t")->spec().width, 3);
}

}  // namespace
}  // namespace hawser::ps
