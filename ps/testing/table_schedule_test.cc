// Learning rates of pushes by step, clock and key, on servers.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/testing/table_test_fixture.h"
#include "ps/worker_clock.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TableScheduleTest : public TableTestFixture {
 protected:
  // A gradient of -1 adds the rate to a weight: 0.5 to the power of the step.
  static TableSpec Spec() {
    return {.name = "t",
            .width = 1,
            .rule = {"SGD", {{"lr", 1}}},
            .schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5})};
  }

  static Tensor Ones(int64_t count) { return Tensor::Full({count, 1}, -1); }

  static WorkerClock Join(const Table& table) {
    absl::StatusOr<WorkerClock> clock = WorkerClock::Join({table}, {});
    EXPECT_THAT(clock, IsOk());
    return *std::move(clock);
  }

  // A push at the clock of the worker, and the end of the clock.
  static void PushAndAdvance(const Table& table, WorkerClock& clock,
                             const PushOptions& options = {}) {
    const async::Future<void> push =
        table.Push(Keys({1, 2, 3}), Ones(3), options);
    ASSERT_THAT(clock.Advance(), IsOk());
    ASSERT_THAT(push.Wait(), IsOk());
  }
};

TEST_F(TableScheduleTest, AnAsynchronousTableCountsTheUpdatesOfEachRow) {
  const Table table = Create(Spec());
  ASSERT_THAT(table.Push(Keys({1, 2}), Ones(2)).Wait(), IsOk());
  ASSERT_THAT(table.Push(Keys({1}), Ones(1)).Wait(), IsOk());
  ASSERT_THAT(table.PushSums(*Keys({1, 3}).Reshape({2, 1}), Ones(2)).Wait(),
              IsOk());
  EXPECT_EQ(Pull(table, {1, 2, 3}), (std::vector<float>{1.75, 1, 1}));
}

TEST_F(TableScheduleTest, APushMaySayItsStepAndItsBase) {
  const Table table = Create(Spec());
  ASSERT_THAT(table.Push(Keys({1, 2}), Ones(2), {.step = 3}).Wait(), IsOk());
  ASSERT_THAT(
      table.Push(Keys({2}), Ones(1), {.learning_rate = 16, .step = 3}).Wait(),
      IsOk());
  ASSERT_THAT(
      table.PushSums(*Keys({1}).Reshape({1, 1}), Ones(1), {.step = 1}).Wait(),
      IsOk());
  EXPECT_EQ(Pull(table, {1, 2}), (std::vector<float>{0.625, 2.125}));
  const absl::StatusOr<Tensor> rows =
      table.PushPull(Keys({1}), Ones(1), {.step = 2}).Wait();
  EXPECT_EQ(rows->ToVector<float>(), (std::vector<float>{0.875}));
  for (const int64_t step : {int64_t{-1}, (int64_t{1} << 53) + 1}) {
    EXPECT_THAT(table.Push(Keys({1}), Ones(1), {.step = step}).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("step of a push must be 0 to 2^53")));
  }
  EXPECT_EQ(Pull(table, {1, 2}), (std::vector<float>{0.875, 2.125}));
}

TEST_F(TableScheduleTest, APushReplacesTheRatesOfKeyRanges) {
  TableSpec spec = Spec();
  spec.schedule = {};
  spec.key_ranges = {
      {.first = 10, .last = 19, .rule = optim::RuleSpec{"SGD", {{"lr", 4}}}}};
  const Table table = Create(spec);
  EXPECT_EQ(Table::Open(job_.agent(0), "t")->spec(), table.spec());
  ASSERT_THAT(table.Push(Keys({9, 10, 19, 20}), Ones(4)).Wait(), IsOk());
  ASSERT_THAT(table.Push(Keys({9, 10}), Ones(2), {.learning_rate = 8}).Wait(),
              IsOk());
  EXPECT_EQ(Pull(table, {9, 10, 19, 20}), (std::vector<float>{9, 12, 4, 1}));
  // Another description is another table.
  spec.key_ranges[0].last = 18;
  EXPECT_THAT(Table::Create(job_.agent(0), spec, Servers()),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("another description")));
}

TEST_F(TableScheduleTest, TheStepOfATableWithClocksIsTheClockOfTheWorker) {
  for (const Consistency consistency :
       {Consistency::Synchronous(), Consistency::BoundedStaleness(1)}) {
    TableSpec spec = Spec();
    spec.name = absl::StrCat("t", static_cast<int>(consistency.mode));
    spec.consistency = consistency;
    const Table table = Create(spec);
    WorkerClock clock = Join(table);
    PushAndAdvance(table, clock);
    ASSERT_THAT(clock.Advance(), IsOk());
    PushAndAdvance(table, clock);
    PushAndAdvance(table, clock, {.step = 1});
    EXPECT_EQ(Pull(table, {1, 2, 3}), (std::vector<float>{1.75, 1.75, 1.75}));
  }
}

TEST_F(TableScheduleTest, ClocksAndRatesContinueAfterARestore) {
  for (const Consistency consistency :
       {Consistency::Synchronous(), Consistency::BoundedStaleness(1)}) {
    TableSpec spec = Spec();
    spec.name = absl::StrCat("t", static_cast<int>(consistency.mode));
    spec.consistency = consistency;
    {
      const Table table = Create(spec);
      WorkerClock clock = Join(table);
      PushAndAdvance(table, clock);
      PushAndAdvance(table, clock);
      EXPECT_EQ(Pull(table, {1}), (std::vector<float>{1.5}));
      ASSERT_THAT(clock.Leave().Wait(), IsOk());
      ASSERT_THAT(table.Save(spec.name).Wait(), IsOk());
    }
    const absl::StatusOr<Table> table =
        Table::Restore(job_.agent(0), spec.name, spec.name, {"w2", "w1"});
    ASSERT_THAT(table, IsOk());
    WorkerClock clock = Join(*table);
    EXPECT_EQ(clock.clock(), 2);
    PushAndAdvance(*table, clock);
    EXPECT_EQ(Pull(*table, {1, 2, 3}), (std::vector<float>{1.75, 1.75, 1.75}));
    // A snapshot of the restored table as well.
    ASSERT_THAT(table->Save(spec.name + "-2").Wait(), IsOk());
    ASSERT_THAT(clock.Leave().Wait(), IsOk());
    const Table again =
        *Table::Restore(job_.agent(0), spec.name, spec.name + "-2", Servers());
    EXPECT_EQ(Join(again).clock(), 3);
  }
}

TEST_F(TableScheduleTest, AServerWithoutTheRuleRefusesTheTable) {
  TableSpec spec = Spec();
  spec.rule = {"Lion", {{"lr", 0.1}}};
  EXPECT_THAT(Table::Create(job_.agent(0), spec, Servers()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker 'w"),
                             HasSubstr("unknown update rule \"Lion\""),
                             HasSubstr("optim::RegisterUpdateRule"))));
  EXPECT_EQ(List().tables_size(), 0);
}

}  // namespace
}  // namespace hawser::ps
