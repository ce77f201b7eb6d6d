#include "ps/table.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::hawser::tensor::Shape;
using ::testing::HasSubstr;

constexpr int kWorkers = 4;
const std::vector<std::string> kServers = {"w1", "w2", "w3"};

Tensor Keys(const std::vector<int64_t>& keys) {
  return Tensor::FromVector(keys, {static_cast<int64_t>(keys.size())});
}

// Keys 0 to n - 1 in the order of their hashes.
std::vector<int64_t> OrderedKeysBelow(int64_t n) {
  std::vector<int64_t> keys(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = i;
  std::sort(keys.begin(), keys.end(), [](int64_t a, int64_t b) {
    return HashKey(static_cast<uint64_t>(a)) <
           HashKey(static_cast<uint64_t>(b));
  });
  return keys;
}

// Worker 0 uses tables on the workers 1 to 3.
class TableTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(kWorkers, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>(
          TableServiceOptions{.limits = {.max_tables = 2, .max_keys = 1000},
                              .snapshot_directory = Snapshots()}));
    });
  }

  // Shared by the workers of a test.
  static std::string Snapshots() {
    return testing::TempDir() + "/" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  Table Create(const TableSpec& spec) {
    absl::StatusOr<Table> table = Table::Create(job_.agent(0), spec, kServers);
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  std::vector<float> Pull(const Table& table, const std::vector<int64_t>& keys,
                          const PullOptions& options = {}) {
    absl::StatusOr<Tensor> rows = table.Pull(Keys(keys), options).Wait();
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->ToVector<float>() : std::vector<float>();
  }

  int64_t Rows(const Table& table) { return table.Size().Wait()->rows; }

  // Sends a pull or push as it is, from worker 0 to worker 1.
  template <class Method, class Request>
  absl::Status Send(const Method& method, const Request& request,
                    std::vector<Tensor> tensors) {
    return job_.agent(0)
        .host()
        .CallMethod("w1", method, request, std::move(tensors))
        .Wait()
        .status();
  }

  rpc::TestJob job_;
};

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
                            gradients, 0.1),
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
  const Table second = *Table::Create(job_.agent(1), spec, kServers);
  const Table third = *Table::Open(job_.agent(2), "t", kServers);
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
  EXPECT_THAT(Table::Create(job_.agent(0), wider, kServers),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists with another description")));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {"w2", "w1", "w3"}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("other shards here")));
  EXPECT_THAT(Table::Open(job_.agent(0), "t", {"w2", "w1", "w3"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not fit its place")));
  EXPECT_THAT(Table::Open(job_.agent(0), "other", kServers),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has no table \"other\"")));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Table::Create(job_.agent(0), spec, {"w1", "w1"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Table::Create(job_.agent(0), {.name = "", .width = 1}, kServers),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Create({.name = "u", .width = 1});
  EXPECT_THAT(Table::Create(job_.agent(0), {.name = "v", .width = 1}, kServers),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("has 2 tables, which is its limit")));
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
struct BadRequest {
  absl::StatusCode code;
  std::string error;
  std::function<void(v1::PushRequest&, std::vector<Tensor>&)> change;
};

TEST_F(TableTest, BadPushesChangeNothing) {
  const Table table =
      Create({.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}});
  // Keys of the first server.
  std::vector<int64_t> keys;
  for (int64_t key : OrderedKeysBelow(100)) {
    if (SplitHash(HashKey(static_cast<uint64_t>(key)), 1024).part < 341) {
      keys.push_back(key);
    }
  }
  keys.resize(20);
  const auto swapped = [&] {
    std::vector<int64_t> changed = keys;
    std::swap(changed[3], changed[4]);
    return Keys(changed);
  };
  const auto repeated = [&] {
    std::vector<int64_t> changed = keys;
    changed[4] = changed[3];
    return Keys(changed);
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<BadRequest> requests = {
      {absl::StatusCode::kNotFound, "no table \"x\"",
       [](auto& r, auto&) { r.set_table("x"); }},
      {invalid, "has 1 tensors; it needs 2",
       [](auto&, auto& t) { t.pop_back(); }},
      {invalid, "keys must be i64[n], not f32[20]",
       [](auto&, auto& t) { t[0] = Tensor::Zeros({20}); }},
      {invalid, "keys must be i64[n], not i64[4, 5]",
       [](auto&, auto& t) {
         t[0] = *t[0].Reshape({4, 5});
       }},
      {invalid, "is not in the order of the hashes",
       [&](auto&, auto& t) { t[0] = swapped(); }},
      {invalid, "repeats the one before",
       [&](auto&, auto& t) { t[0] = repeated(); }},
      {absl::StatusCode::kFailedPrecondition, "this server holds the shards",
       [&](auto&, auto& t) { t[0] = Keys(OrderedKeysBelow(20)); }},
      {invalid, "gradients must be f32, f16 or bf16 [20, 2], not f32[20, 3]",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({20, 3});
       }},
      {invalid, "not f64[20, 2]",
       [](auto&, auto& t) { t[1] = *t[1].To(DType::kF64); }},
      {invalid, "pushes count from 1",
       [](auto& r, auto&) { r.set_sequence(0); }},
      {invalid, "learning rate",
       [](auto& r, auto&) { r.set_learning_rate(-1); }},
      {absl::StatusCode::kResourceExhausted, "at most 1000 keys, not 1001",
       [](auto&, auto& t) {
         t = {Keys(OrderedKeysBelow(1001)), Tensor::Ones({1001, 2})};
       }},
  };
  for (const BadRequest& bad : requests) {
    v1::PushRequest request;
    request.set_table("t");
    request.set_sequence(100);
    std::vector<Tensor> tensors = {Keys(keys), Tensor::Ones({20, 2})};
    bad.change(request, tensors);
    EXPECT_THAT(Send(kPushMethod, request, tensors),
                StatusIs(bad.code, HasSubstr(bad.error)));
    EXPECT_EQ(Rows(table), 0) << bad.error;
  }
  // The same request without a change is applied, once.
  v1::PushRequest request;
  request.set_table("t");
  request.set_sequence(100);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_THAT(Send(kPushMethod, request, {Keys(keys), Tensor::Ones({20, 2})}),
                IsOk());
  }
  EXPECT_EQ(Pull(table, keys), std::vector<float>(40, -1));
}

TEST_F(TableTest, SixteenBitGradientsAreAccepted) {
  const Table table =
      Create({.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}});
  const std::vector<int64_t> key = {OrderedKeysBelow(100)[0]};
  uint64_t sequence = 1;
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    v1::PushRequest request;
    request.set_table("t");
    request.set_sequence(sequence++);
    EXPECT_THAT(Send(kPushMethod, request,
                     {Keys(key), *Tensor::Full({1, 2}, -1.5).To(dtype)}),
                IsOk());
  }
  EXPECT_EQ(Pull(table, key), (std::vector<float>{3, 3}));
}

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

TEST_F(TableTest, BadBagsChangeNothing) {
  const Table table = Create({.name = "t", .width = 2});
  const Tensor key = Keys({OrderedKeysBelow(100)[0]});
  const auto bag = [](int32_t number) {
    return Tensor::FromVector(std::vector<int32_t>{number}, {1});
  };
  v1::PullSumsRequest pull;
  pull.set_table("t");
  pull.set_num_bags(1);
  v1::PushSumsRequest push;
  push.set_table("t");
  push.set_sequence(1);
  const Tensor gradient = Tensor::Ones({1, 2});
  for (int32_t number : {-1, 1}) {
    EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(number)}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not below 1")));
    EXPECT_THAT(Send(kPushSumsMethod, push, {key, bag(number), gradient}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not below 1")));
  }
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, key}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bags must be i32[1], not i64[1]")));
  EXPECT_THAT(Send(kPushSumsMethod, push, {key, bag(0), Tensor::Ones({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients must be")));
  pull.set_num_bags(-1);
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(0)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a request for -1 bags")));
  pull.set_num_bags(int64_t{1} << 60);
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(0)}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Rows(table), 0);
}

TEST_F(TableTest, SnapshotRestoresOntoOtherNumbersOfServers) {
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
        kServers,
        {"w3", "w1", "w0", "w2"}}) {
    const absl::StatusOr<Table> restored =
        Table::Restore(job_.agent(0), "a/b", "step-1", servers);
    ASSERT_THAT(restored, IsOk());
    EXPECT_EQ(restored->spec(), table.spec());
    EXPECT_EQ(Rows(*restored), 500);
    EXPECT_EQ(Pull(*restored, keys), rows);
    train(*restored);
    EXPECT_EQ(Pull(*restored, keys), later);
  }
}

TEST_F(TableTest, BadSnapshotsAreRefused) {
  const Table table = Create({.name = "t", .width = 1});
  Pull(table, OrderedKeysBelow(100));
  for (const char* name : {"", "..", ".x", "a/b", "a b"}) {
    EXPECT_THAT(table.Save(name).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("a snapshot has a name of")))
        << name;
  }
  EXPECT_THAT(Table::Restore(job_.agent(0), "t", "none", kServers),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot read the snapshot")));
  ASSERT_THAT(table.Save("one").Wait(), IsOk());
  EXPECT_THAT(Table::Restore(job_.agent(0), "u", "one", kServers),
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

TEST(TableWithoutServiceTest, SaysWhatIsMissing) {
  rpc::TestJob job;
  job.StartAll(1);
  EXPECT_THAT(Table::Create(job.agent(0), {.name = "t", .width = 1}, {"w0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("add a ps::TableService")));
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
