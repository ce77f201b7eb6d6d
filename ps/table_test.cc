#include "ps/table.h"

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/table_service.h"
#include "ps/testing/table_test_fixture.h"
#include "rpc/agent/service_host.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/shape.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Shape;
using ::testing::HasSubstr;

class TableTest : public TableTestFixture {};

TEST_F(TableTest, RowsAreTheSameOnAnyNumberOfServers) {
  const TableSpec spec{.name = "t",
                       .width = 3,
                       .initializer = Initializer::Uniform(-1, 1),
                       .seed = 9};
  const Table table = Create(spec);
  const auto local = *SparseTable::Create(spec);
  std::vector<int64_t> keys = {5, 0, -1, 5, 99, 12345678901234};
  std::vector<float> expected(keys.size() * 3);
  ASSERT_THAT(
      local->Pull({reinterpret_cast<const uint64_t*>(keys.data()), keys.size()},
                  expected),
      IsOk());
  EXPECT_EQ(Pull(table, keys), expected);
  EXPECT_EQ(Rows(table), 5);
}

TEST_F(TableTest, ResultHasTheShapeOfTheKeysAndTheWidth) {
  const Table table = Create({.name = "t", .width = 4});
  EXPECT_EQ(
      table.Pull(*Keys({1, 2, 3, 4, 5, 6}).Reshape({2, 3})).Wait()->shape(),
      Shape({2, 3, 4}));
  EXPECT_EQ(table.Pull(Keys({})).Wait()->shape(), Shape({0, 4}));
  EXPECT_THAT(table.Push(Keys({}), Tensor::Zeros({0, 4})).Wait(), IsOk());
}

TEST_F(TableTest, PushesOfManyKeysAgreeWithATableInThisProcess) {
  const TableSpec spec{.name = "t",
                       .width = 5,
                       .rule = {"RowWiseAdagrad", {{"lr", 0.1}}},
                       .initializer = Initializer::Normal(0, 1)};
  const Table table = Create(spec);
  const auto local = *SparseTable::Create(spec);
  std::mt19937_64 random(1);
  std::vector<int64_t> all = OrderedKeysBelow(400);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(all.begin(), all.end(), random);
    std::vector<int64_t> keys(all.begin(), all.begin() + 300);
    // Also the path without sorting.
    if (round % 3 == 0) keys = OrderedKeysBelow(300);
    std::vector<float> gradients(keys.size() * 5);
    for (float& g : gradients) g = static_cast<float>(random() % 100) - 50;
    ASSERT_THAT(
        table
            .Push(Keys(keys),
                  Tensor::FromVector(gradients,
                                     {static_cast<int64_t>(keys.size()), 5}))
            .Wait(),
        IsOk());
    ASSERT_THAT(local->Push({reinterpret_cast<const uint64_t*>(keys.data()),
                             keys.size()},
                            gradients, {0.1}),
                IsOk());
  }
  std::vector<float> expected(all.size() * 5);
  ASSERT_THAT(
      local->Pull({reinterpret_cast<const uint64_t*>(all.data()), all.size()},
                  expected),
      IsOk());
  EXPECT_EQ(Pull(table, all), expected);
}

TEST_F(TableTest, GradientsOfARepeatedKeyAreAddedFirst) {
  const Table table = Create(
      {.name = "t", .width = 1, .rule = {"Adagrad", {{"lr", 1}, {"eps", 0}}}});
  ASSERT_THAT(table
                  .Push(Keys({7, 8, 7}),
                        Tensor::FromVector(std::vector<float>{3, 1, 1}, {3, 1}))
                  .Wait(),
              IsOk());
  // One update by 4: 4 / sqrt(16).
  EXPECT_EQ(Pull(table, {7, 8}), (std::vector<float>{-1, -1}));
}

TEST_F(TableTest, PushHasALearningRateOfItsOwn) {
  const Table table =
      Create({.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}});
  const Tensor one = Tensor::Ones({1, 1});
  ASSERT_THAT(table.Push(Keys({1}), one).Wait(), IsOk());
  EXPECT_EQ(Pull(table, {1}), std::vector<float>{-1});
  ASSERT_THAT(table.Push(Keys({1}), one, {.learning_rate = 0.5}).Wait(),
              IsOk());
  EXPECT_EQ(Pull(table, {1}), std::vector<float>{-1.5});
  EXPECT_THAT(table.Push(Keys({1}), one, {.learning_rate = -1}).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the learning rate must be at least 0")));
}

TEST_F(TableTest, PullCanLeaveMissingRowsMissing) {
  const Table table = Create(
      {.name = "t", .width = 1, .initializer = Initializer::Constant(2)});
  EXPECT_EQ(Pull(table, {1}, {.create_missing = false}), std::vector<float>{2});
  EXPECT_EQ(Rows(table), 0);
}

TEST_F(TableTest, OneServerGetsDistinctKeysAsTheyAreAndRepeatedOnesOnce) {
  const Table table = *Table::Create(
      job_.agent(0),
      {.name = "t", .width = 2, .initializer = Initializer::Uniform(0, 1)},
      {"w1"});
  std::vector<int64_t> distinct(300);
  for (int64_t i = 0; i < 300; ++i) distinct[i] = i * 7 % 300;
  const std::vector<float> rows = Pull(table, distinct);
  std::vector<int64_t> repeated;
  std::vector<float> expected;
  for (int64_t i = 0; i < 900; ++i) {
    repeated.push_back(distinct[i * i % 30]);
    expected.push_back(rows[2 * (i * i % 30)]);
    expected.push_back(rows[2 * (i * i % 30) + 1]);
  }
  const uint64_t before = job_.agent(1).transfer_totals().tensor_bytes_sent;
  EXPECT_EQ(Pull(table, repeated), expected);
  // 30 distinct keys: at most 30 rows of 8 bytes.
  EXPECT_LE(job_.agent(1).transfer_totals().tensor_bytes_sent - before, 240u);
}

TEST_F(TableTest, OtherWorkersCreateAndOpenTheSameTable) {
  const TableSpec spec{.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}};
  const Table first = Create(spec);
  const Table second = *Table::Create(job_.agent(1), spec, Servers());
  const Table third = *Table::Open(job_.agent(2), "t", Servers());
  EXPECT_EQ(third.spec(), first.spec());
  for (const Table* table : {&first, &second, &third}) {
    ASSERT_THAT(table->Push(Keys({3}), Tensor::Ones({1, 1})).Wait(), IsOk());
  }
  EXPECT_EQ(Pull(first, {3}), std::vector<float>{-3});
}

TEST_F(TableTest, OtherDescriptionsAndServersAreRefused) {
  const TableSpec spec{.name = "t", .width = 1};
  Create(spec);
  TableSpec wider = spec;
  wider.width = 2;
  EXPECT_THAT(Table::Create(job_.agent(0), wider, Servers()),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists with another description")));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {"w2", "w1", "w3"}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists on other servers: 'w1', 'w2', 'w3'")));
  EXPECT_THAT(Table::Open(job_.agent(0), "t", {"w2", "w1", "w3"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not fit its place")));
  EXPECT_THAT(Table::Open(job_.agent(0), "other", Servers()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has no table \"other\"")));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {"w1", "w1"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Table::Create(job_.agent(0), {.name = "", .width = 1}, Servers()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Create({.name = "u", .width = 1});
  EXPECT_THAT(
      Table::Create(job_.agent(0), {.name = "v", .width = 1}, Servers()),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("has 2 tables, which is its limit")));
}

TEST_F(TableTest, IsOpenedByItsName) {
  EXPECT_THAT(Table::Open(job_.agent(0), "t"),
              StatusIs(absl::StatusCode::kNotFound));
  const Table table = Create({.name = "t", .width = 2});
  const auto opened = Table::Open(job_.agent(3), "t");
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->servers(), Servers());
  EXPECT_EQ(opened->spec(), table.spec());
}

TEST_F(TableTest, ADroppedTableIsGoneAndItsServersKnowWhereItIs) {
  const Table table = Create({.name = "t", .width = 2});
  Pull(table, {1, 2, 3});
  v1::DropTableRequest request;
  request.set_table("t");
  EXPECT_THAT(Send(kDropTableMethod, request, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the version that replaces it")));
  // That of the table stays.
  request.mutable_route()->set_version(1);
  EXPECT_THAT(Send(kDropTableMethod, request, {}), IsOk());
  EXPECT_EQ(List().tables_size(), 1);
  request.mutable_route()->set_version(2);
  request.mutable_route()->add_servers("w0");
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const std::string& server : Servers()) {
      EXPECT_THAT(job_.agent(0)
                      .host()
                      .CallMethod(server, kDropTableMethod, request)
                      .Wait(),
                  IsOk());
    }
  }
  EXPECT_EQ(List().tables_size(), 0);
  // The store does not record that version.
  EXPECT_THAT(table.Pull(Keys({1})).Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("knows version 2 on 'w0'")));
}

TEST_F(TableTest, WrongArgumentsAreRefusedByTheClient) {
  const Table table = Create({.name = "t", .width = 2});
  EXPECT_THAT(table.Pull(Tensor::Zeros({2})).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("keys must be i64 on cpu, not f32[2]")));
  EXPECT_THAT(table.Push(Keys({1}), Tensor::Zeros({1, 3})).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients must be f32[1, 2]")));
}

// A request as a broken or hostile client may send it.
TEST_F(TableTest, SumsAreThoseOfTheRows) {
  const TableSpec spec{.name = "t",
                       .width = 3,
                       .rule = {"SGD", {{"lr", 1}}},
                       .initializer = Initializer::Uniform(-1, 1)};
  const Table table = Create(spec);
  std::vector<int64_t> keys(400);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(i * i % 57);
  }
  const Tensor bags = *Keys(keys).Reshape({5, 2, 40});
  const auto expected_sums = [&] {
    const std::vector<float> rows = Pull(table, keys);
    std::vector<double> sums(30);
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t c = 0; c < 3; ++c) sums[i / 40 * 3 + c] += rows[i * 3 + c];
    }
    return sums;
  };
  const auto expect_sums = [&] {
    const absl::StatusOr<Tensor> sums = table.PullSums(bags).Wait();
    ASSERT_THAT(sums, IsOk());
    EXPECT_EQ(sums->shape(), Shape({5, 2, 3}));
    EXPECT_THAT(sums->ToVector<float>(),
                testing::Pointwise(testing::FloatNear(1e-4f), expected_sums()));
  };
  expect_sums();

  std::vector<float> gradients(30);
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = (static_cast<float>(i) - 11) / 64;
  }
  std::map<int64_t, std::vector<float>> expected;
  for (int64_t key : keys) {
    if (!expected.contains(key)) expected[key] = Pull(table, {key});
  }
  std::map<int64_t, std::vector<float>> gradient_of_key;
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<float>& sum = gradient_of_key[keys[i]];
    sum.resize(3);
    for (size_t c = 0; c < 3; ++c) sum[c] += gradients[i / 40 * 3 + c];
  }
  ASSERT_THAT(
      table.PushSums(bags, Tensor::FromVector(gradients, {5, 2, 3})).Wait(),
      IsOk());
  for (auto& [key, row] : expected) {
    for (size_t c = 0; c < 3; ++c) row[c] -= gradient_of_key[key][c];
    EXPECT_THAT(Pull(table, {key}),
                testing::Pointwise(testing::FloatNear(1e-4f), row));
  }
  expect_sums();
  EXPECT_EQ(table.PullSums(*Keys({}).Reshape({2, 0})).Wait()->ToVector<float>(),
            std::vector<float>(6));
  EXPECT_THAT(table.PullSums(Tensor::Scalar(1)).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(table.PushSums(bags, Tensor::Zeros({5, 3})).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients must be f32[5, 2, 3]")));
}

TEST(TableWithoutServiceTest, SaysWhatIsMissing) {
  rpc::TestJob job;
  job.StartAll(1);
  EXPECT_THAT(Table::Create(job.agent(0), {.name = "t", .width = 1}, {"w0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("add a ps::TableService")));
}

TEST(LostServerTest, IsNamed) {
  rpc::TestJob job;
  job.StartAll(2, [](int, rpc::AgentOptions& options) {
    options.default_timeout = absl::Seconds(1);
    options.services.push_back(std::make_unique<TableService>());
  });
  const Table table =
      *Table::Create(job.agent(0), {.name = "t", .width = 1}, {"w1"});
  ASSERT_THAT(job.agent(1).Shutdown(/*graceful=*/false), IsOk());
  EXPECT_THAT(
      table.Pull(Keys({1})).Wait(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker 'w1'")));
}

}  // namespace
}  // namespace hawser::ps
