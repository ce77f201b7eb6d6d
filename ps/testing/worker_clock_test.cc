#include "ps/worker_clock.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/clock/clock_gate.h"
#include "ps/embedding.h"
#include "ps/storage/consistency.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/testing/table_test_fixture.h"
#include "rpc/agent/agent_options.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Workers 0 and 1 train tables on the workers 2 to 4.
class WorkerClockTest : public testing::Test {
 protected:
  void Start(absl::Duration timeout = absl::Seconds(20)) {
    job_.StartAll(5, [timeout](int, rpc::AgentOptions& options) {
      options.default_timeout = timeout;
      options.services.push_back(std::make_unique<TableService>(
          TableServiceOptions{.limits = {.max_parked_requests_per_peer = 6}}));
    });
  }

  static TableSpec Spec(Consistency consistency) {
    return {.name = "t",
            .width = 2,
            .rule = {"SGD", {{"lr", 1}}},
            .consistency = consistency};
  }

  Table Create(int worker, const TableSpec& spec, int num_servers = 1) {
    std::vector<std::string> servers;
    for (int i = 0; i < num_servers; ++i) {
      servers.push_back(absl::StrCat("w", 2 + i));
    }
    absl::StatusOr<Table> table =
        Table::Create(job_.agent(worker), spec, servers);
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  static WorkerClock Join(const Table& table, int num_workers = 1) {
    absl::StatusOr<WorkerClock> clock =
        WorkerClock::Join({table}, {.num_workers = num_workers});
    EXPECT_THAT(clock, IsOk());
    return *std::move(clock);
  }

  static std::vector<float> Row(const Table& table, int64_t key) {
    absl::StatusOr<Tensor> rows = table.Pull(Keys({key})).Wait();
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->ToVector<float>() : std::vector<float>();
  }

  rpc::TestJob job_;
};

TEST_F(WorkerClockTest, APullSeesTheClocksThatAreComplete) {
  Start();
  const Table a = Create(0, Spec(Consistency::Synchronous()));
  const Table b = Create(1, Spec(Consistency::Synchronous()));
  WorkerClock clock_a = Join(a, 2);
  WorkerClock clock_b = Join(b, 2);
  const async::Future<void> push = a.Push(Keys({7}), Tensor::Full({1, 2}, -1));
  EXPECT_EQ(Row(a, 7), (std::vector<float>{0, 0}));
  EXPECT_EQ(Row(b, 7), (std::vector<float>{0, 0}));
  ASSERT_THAT(clock_a.Advance(), IsOk());
  EXPECT_EQ(clock_a.clock(), 1);
  const async::Future<Tensor> next = a.Pull(Keys({7}));
  EXPECT_EQ(Row(b, 7), (std::vector<float>{0, 0}));
  EXPECT_FALSE(push.ready());
  EXPECT_FALSE(next.ready());
  ASSERT_THAT(clock_b.Advance(), IsOk());
  EXPECT_EQ(next.Wait()->ToVector<float>(), (std::vector<float>{1, 1}));
  EXPECT_THAT(push.Wait(), IsOk());
  EXPECT_EQ(Row(b, 7), (std::vector<float>{1, 1}));
}

TEST_F(WorkerClockTest, APushPullReturnsTheRowsOfTheNextClock) {
  Start();
  const Table a = Create(0, Spec(Consistency::Synchronous()));
  const Table b = Create(1, Spec(Consistency::Synchronous()));
  WorkerClock clock_a = Join(a, 2);
  WorkerClock clock_b = Join(b, 2);
  const async::Future<Tensor> of_a =
      a.PushPull(Keys({7}), Tensor::Full({1, 2}, -1));
  const async::Future<Tensor> of_b =
      b.PushPull(Keys({7}), Tensor::Full({1, 2}, -4));
  ASSERT_THAT(clock_a.Advance(), IsOk());
  ASSERT_THAT(clock_b.Advance(), IsOk());
  EXPECT_EQ(of_a.Wait()->ToVector<float>(), (std::vector<float>{5, 5}));
  EXPECT_EQ(of_b.Wait()->ToVector<float>(), (std::vector<float>{5, 5}));
}

TEST_F(WorkerClockTest, AssignmentsHaveNoClock) {
  Start();
  const Table table = Create(0, Spec(Consistency::Synchronous()));
  ASSERT_THAT(table.Assign(Keys({7}), Tensor::Full({1, 2}, 3)).Wait(), IsOk());
  WorkerClock clock = Join(table);
  EXPECT_EQ(Row(table, 7), (std::vector<float>{3, 3}));
  ASSERT_THAT(table.Assign(Keys({7}), Tensor::Full({1, 2}, 4)).Wait(), IsOk());
  EXPECT_EQ(Row(table, 7), (std::vector<float>{4, 4}));
}

TEST_F(WorkerClockTest, OnlyMembersPush) {
  Start();
  for (const Consistency consistency :
       {Consistency::Synchronous(), Consistency::BoundedStaleness(1)}) {
    TableSpec spec = Spec(consistency);
    spec.name = absl::StrCat("t", consistency.bound);
    const Table table = Create(0, spec);
    EXPECT_THAT(
        table.Push(Keys({7}), Tensor::Full({1, 2}, -1)).Wait(),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr(absl::StrCat("table \"", spec.name, "\"")),
                       HasSubstr("ps::WorkerClock"))));
    // A pull without a clock does not wait.
    EXPECT_EQ(Row(table, 7), (std::vector<float>{0, 0}));
  }
}

TEST_F(WorkerClockTest, TablesWithoutAClockAreRefused) {
  Start();
  const Table table = Create(0, Spec(Consistency::Asynchronous()));
  EXPECT_THAT(WorkerClock::Join({table}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("TableSpec::consistency")));
  EXPECT_THAT(WorkerClock::Join({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at least one table")));
}

TEST_F(WorkerClockTest, AnErrorNamesTheWorkersThatARequestWaitsFor) {
  Start(absl::Seconds(1));
  const Table a = Create(0, Spec(Consistency::Synchronous()));
  const Table b = Create(1, Spec(Consistency::Synchronous()));
  WorkerClock clock_a = Join(a, 2);
  EXPECT_THAT(WorkerClock::Join({a}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("has joined the table's clock")));
  const async::Future<void> push = a.Push(Keys({7}), Tensor::Full({1, 2}, -1));
  EXPECT_THAT(push.Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("2 workers to join, of which 1 have")));
  // The push failed, so this clock does not go on.
  EXPECT_THAT(clock_a.Advance(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("table \"t\"")));
  ASSERT_THAT(clock_a.Leave().Wait(), IsOk());
  clock_a = Join(a, 2);
  WorkerClock clock_b = Join(b, 2);
  ASSERT_THAT(clock_a.Advance(), IsOk());
  EXPECT_THAT(a.Pull(Keys({7})).Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("table \"t\": a pull at clock 1"),
                             HasSubstr("'w1' at clock 0"))));
}

TEST_F(WorkerClockTest, AWorkerThatLeavesHoldsNobodyUp) {
  Start();
  const Table a = Create(0, Spec(Consistency::BoundedStaleness(0)), 3);
  const Table b = Create(1, Spec(Consistency::BoundedStaleness(0)), 3);
  WorkerClock clock_a = Join(a, 2);
  std::optional<WorkerClock> clock_b = Join(b, 2);
  ASSERT_THAT(clock_a.Advance(), IsOk());
  const async::Future<Tensor> pull = a.Pull(Keys({7}));
  EXPECT_FALSE(pull.ready());
  clock_b.reset();
  EXPECT_THAT(pull.Wait(), IsOk());
}

TEST_F(WorkerClockTest, ALateWorkerBeginsAtTheFirstOpenClock) {
  Start();
  const Table a = Create(0, Spec(Consistency::Synchronous()), 3);
  const Table b = Create(1, Spec(Consistency::Synchronous()), 3);
  WorkerClock clock_a = Join(a);
  for (int step = 0; step < 3; ++step) {
    const async::Future<void> push =
        a.Push(Keys({7}), Tensor::Full({1, 2}, -1));
    ASSERT_THAT(clock_a.Advance(), IsOk());
    ASSERT_THAT(push.Wait(), IsOk());
  }
  // Of the servers without the row, one may not have the last message yet.
  ASSERT_THAT(a.Pull(Keys({0, 1, 2, 3, 4, 5, 6, 7})).Wait(), IsOk());
  WorkerClock clock_b = Join(b);
  EXPECT_EQ(clock_b.clock(), 3);
  EXPECT_EQ(Row(b, 7), (std::vector<float>{3, 3}));
}

TEST_F(WorkerClockTest, ParkedRequestsAreBounded) {
  Start();
  const Table a = Create(0, Spec(Consistency::Synchronous()));
  WorkerClock clock = Join(a, 2);
  std::vector<async::Future<void>> pushes;
  for (int i = 0; i < 7; ++i) {
    pushes.push_back(a.Push(Keys({7}), Tensor::Full({1, 2}, -1)));
  }
  // Six wait for the second worker. The clock does not go on without the other.
  const absl::StatusOr<Tensor> rows = a.Pull(Keys({7})).Wait();
  while (clock.Advance().ok()) {
  }
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("TableLimits::max_parked_requests_per_peer"));
  EXPECT_THAT(clock.Advance(), refused);
  EXPECT_THAT(a.Pull(Keys({7})).Wait(), refused);
}

TEST_F(WorkerClockTest, NumbersShowClocksAndStaleness) {
  Start();
  const Table a = Create(0, Spec(Consistency::BoundedStaleness(2)));
  const Table b = Create(1, Spec(Consistency::BoundedStaleness(2)));
  WorkerClock clock_a = Join(a, 2);
  WorkerClock clock_b = Join(b, 2);
  Row(a, 7);
  ASSERT_THAT(clock_a.Advance(), IsOk());
  ASSERT_THAT(clock_a.Advance(), IsOk());
  Row(a, 7);
  const auto clocks = job_.agent(2).service<TableService>()->ClocksOfTables();
  ASSERT_TRUE(clocks.contains("t"));
  const ClockNumbers& numbers = clocks.at("t");
  EXPECT_EQ(numbers.completed, 0);
  EXPECT_EQ(numbers.num_workers, 2);
  EXPECT_EQ(numbers.num_parked, 0);
  EXPECT_EQ(numbers.pulls_by_staleness[0], 1);
  EXPECT_EQ(numbers.pulls_by_staleness[2], 1);
}

// A training whose result depends on the order of the updates.
class SynchronousTrainingTest : public WorkerClockTest {
 protected:
  static constexpr int kSteps = 6;
  static constexpr int64_t kKeys = 5;

  static TableSpec Spec(const std::string& name) {
    return {.name = name,
            .width = 3,
            .rule = {"Adagrad", {{"lr", 0.1}}},
            .initializer = Initializer::Uniform(-1, 1),
            .seed = 3,
            .consistency = Consistency::Synchronous()};
  }

  // Factors of the loss of a look-up of one trainer.
  static Tensor Factors(int trainer, int step, int lookup) {
    std::vector<float> factors(kKeys * 3);
    for (size_t i = 0; i < factors.size(); ++i) {
      factors[i] = 0.1f * static_cast<float>(trainer + 1) +
                   0.37f * static_cast<float>(step * lookup) -
                   0.013f * static_cast<float>(i);
    }
    return Tensor::FromVector(factors, {kKeys, 3});
  }

  static Tensor AllKeys() {
    std::vector<int64_t> keys(kKeys);
    for (int64_t key = 0; key < kKeys; ++key) keys[key] = key;
    return Keys(keys);
  }

  // Two look-ups with a backward pass each, then the next clock.
  static absl::Status Train(const Table& table, int trainer) {
    ASSIGN_OR_RETURN(WorkerClock clock,
                     WorkerClock::Join({table}, {.num_workers = 2}));
    Embedding embedding(table);
    for (int step = 0; step < kSteps; ++step) {
      for (int lookup = 0; lookup < 2; ++lookup) {
        ASSIGN_OR_RETURN(const Tensor rows, embedding.Forward(AllKeys()));
        ASSIGN_OR_RETURN(const Tensor cubes, autograd::Mul(rows, rows));
        ASSIGN_OR_RETURN(const Tensor terms,
                         autograd::Mul(cubes, Factors(trainer, step, lookup)));
        ASSIGN_OR_RETURN(const Tensor loss, autograd::Sum(terms));
        RETURN_IF_ERROR(autograd::Backward(loss));
      }
      RETURN_IF_ERROR(clock.Advance());
    }
    RETURN_IF_ERROR(embedding.Flush());
    return clock.Leave().Wait();
  }

  // The rows after a training with two trainers.
  std::vector<float> Run(const std::string& name, int num_servers) {
    const TableSpec spec = Spec(name);
    const Table tables[] = {Create(0, spec, num_servers),
                            Create(1, spec, num_servers)};
    absl::Status results[2];
    std::thread other([&] { results[1] = Train(tables[1], 1); });
    results[0] = Train(tables[0], 0);
    other.join();
    EXPECT_THAT(results[0], IsOk());
    EXPECT_THAT(results[1], IsOk());
    return tables[0].Pull(AllKeys()).Wait()->ToVector<float>();
  }

  // The same, one push after the other.
  static std::vector<float> RunAlone() {
    const auto table = *SparseTable::Create(Spec("alone"));
    const std::vector<uint64_t> keys = {0, 1, 2, 3, 4};
    std::vector<float> rows(keys.size() * 3);
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_THAT(table->Pull(keys, rows), IsOk());
      for (int trainer = 0; trainer < 2; ++trainer) {
        for (int lookup = 0; lookup < 2; ++lookup) {
          const std::vector<float> factors =
              Factors(trainer, step, lookup).ToVector<float>();
          std::vector<float> gradients(rows.size());
          for (size_t i = 0; i < rows.size(); ++i) {
            gradients[i] = factors[i] * rows[i] + factors[i] * rows[i];
          }
          EXPECT_THAT(table->Push(keys, gradients, {0.1}), IsOk());
        }
      }
    }
    EXPECT_THAT(table->Pull(keys, rows), IsOk());
    return rows;
  }
};

TEST_F(SynchronousTrainingTest, DependsNeitherOnTimingNorOnServers) {
  Start();
  const std::vector<float> expected = RunAlone();
  for (int run = 0; run < 4; ++run) {
    EXPECT_EQ(Run(absl::StrCat("one", run), 1), expected);
    EXPECT_EQ(Run(absl::StrCat("three", run), 3), expected);
  }
}

}  // namespace
}  // namespace hawser::ps
