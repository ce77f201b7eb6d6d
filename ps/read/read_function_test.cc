#include "ps/read/read_function.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/row_encoding.h"
#include "ps/service_methods.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/testing/table_test_fixture.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// The dot product of the weights and an argument.
absl::StatusOr<ReadFunction> MakeDot(const TableSpec& table,
                                     std::span<const Tensor> arguments) {
  if (arguments.size() != 1 ||
      arguments[0].shape() != tensor::Shape({table.width})) {
    return absl::NotFoundError("dot takes one f32[width]");
  }
  return ReadFunction{.width = 1,
                      .read = [query = arguments[0]](const RowView& row,
                                                     std::span<float> result) {
                        result[0] = std::inner_product(
                            row.weights.begin(), row.weights.end(),
                            query.data<float>(), 0.0f);
                      }};
}

// Everything that a function sees: key, weights, slots and number of updates.
absl::StatusOr<ReadFunction> MakeDump(const TableSpec& table,
                                      std::span<const Tensor>) {
  return ReadFunction{.width = 2 + 4 * table.width,
                      .read = [](const RowView& row, std::span<float> result) {
                        result[0] = static_cast<float>(row.key);
                        result[1] = static_cast<float>(row.num_updates);
                        size_t next = 2;
                        for (float weight : row.weights)
                          result[next++] = weight;
                        for (const auto& slot : row.state) {
                          for (float number : slot) result[next++] = number;
                        }
                      }};
}

class ReadFunctionTest : public TableTestFixture {
 protected:
  static void SetUpTestSuite() {
    EXPECT_THAT(RegisterReadFunction("dot", MakeDot), IsOk());
    EXPECT_THAT(RegisterReadFunction("dump", MakeDump), IsOk());
    EXPECT_THAT(RegisterReadFunction(
                    "too_wide",
                    [](const TableSpec&, std::span<const Tensor>) {
                      return ReadFunction{
                          .width = 65537,
                          .read = [](const RowView&, std::span<float>) {}};
                    }),
                IsOk());
    EXPECT_THAT(
        RegisterReadFunction("empty",
                             [](const TableSpec&, std::span<const Tensor>) {
                               return ReadFunction{.width = 1, .read = nullptr};
                             }),
        IsOk());
  }

  // A table with rows of the keys 0 to 99, row i of which has the weights i.
  Table Numbered(TableSpec spec) {
    spec.name = "t";
    spec.width = 2;
    const Table table = Create(spec);
    std::vector<int64_t> keys(100);
    std::iota(keys.begin(), keys.end(), 0);
    Tensor weights = Tensor::Zeros({100, 2});
    for (int64_t i = 0; i < 200; ++i) {
      weights.data<float>()[i] = static_cast<float>(i / 2);
    }
    EXPECT_THAT(table.Assign(Keys(keys), weights).Wait(), IsOk());
    return table;
  }
};

TEST_F(ReadFunctionTest, APullReturnsItsResultsForEachKey) {
  const Table table = Numbered({});
  const PullOptions dot{
      .function = "dot",
      .arguments = {Tensor::FromVector(std::vector<float>{1, 10}, {2})}};
  const absl::StatusOr<Tensor> results =
      table.Pull(*Keys({7, 99, 3, 7, 0, 41}).Reshape({3, 2}), dot).Wait();
  ASSERT_THAT(results, IsOk());
  EXPECT_EQ(results->shape(), tensor::Shape({3, 2, 1}));
  EXPECT_EQ(results->ToVector<float>(),
            (std::vector<float>{77, 1089, 33, 77, 0, 451}));
  // 16-bit results.
  PullOptions narrow = dot;
  narrow.encoding = RowEncoding::kBF16;
  EXPECT_EQ(Pull(table, {3, 8}, narrow), (std::vector<float>{33, 88}));
  EXPECT_EQ(table.Pull(Keys({}), dot).Wait()->shape(), tensor::Shape({0, 0}));
}

TEST_F(ReadFunctionTest, SumsAddTheResults) {
  const Table table = Numbered({});
  const PullOptions dot{
      .function = "dot",
      .arguments = {Tensor::FromVector(std::vector<float>{1, 10}, {2})}};
  const absl::StatusOr<Tensor> sums =
      table.PullSums(*Keys({1, 2, 3, 50, 60, 70}).Reshape({2, 3}), dot).Wait();
  ASSERT_THAT(sums, IsOk());
  EXPECT_EQ(sums->shape(), tensor::Shape({2, 1}));
  EXPECT_EQ(sums->ToVector<float>(), (std::vector<float>{66, 1980}));
}

TEST_F(ReadFunctionTest, SeesKeyStateAndNumberOfUpdates) {
  const Table table = Numbered(
      {.rule = {"SparseAdam", {{"lr", 1}, {"beta1", 0.5}, {"beta2", 0.75}}}});
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(
        table.Push(Keys({5}), Tensor::Full({1, 2}, 4), {.learning_rate = 0})
            .Wait(),
        IsOk());
  }
  // exp_avg and exp_avg_sq after two gradients of 4.
  EXPECT_EQ(Pull(table, {5, 6}, {.function = "dump"}),
            (std::vector<float>{5, 2, 5, 5, 3, 3, 7, 7, 0, 0,  //
                                6, 0, 6, 6, 0, 0, 0, 0, 0, 0}));
}

TEST_F(ReadFunctionTest, SeesSixteenBitWeightsAndOneNumberPerRow) {
  const Table table = Numbered(
      {.dtype = tensor::DType::kF16, .rule = {"RowWiseAdagrad", {{"lr", 0}}}});
  ASSERT_THAT(table.Push(Keys({5}), Tensor::Full({1, 2}, 3)).Wait(), IsOk());
  EXPECT_EQ(Pull(table, {5}, {.function = "dump"}),
            (std::vector<float>{5, 1, 5, 5, 9, 0, 0, 0, 0, 0}));
}

TEST_F(ReadFunctionTest, AMissingRowIsANewOne) {
  const Table table = Numbered(
      {.rule = {"Adagrad", {{"lr", 0.1}, {"initial_accumulator_value", 3}}},
       .initializer = Initializer::Constant(0.5)});
  const std::vector<float> expected = {1000, 0, 0.5, 0.5, 3, 3, 0, 0, 0, 0};
  EXPECT_EQ(Pull(table, {1000}, {.create_missing = false, .function = "dump"}),
            expected);
  EXPECT_EQ(Rows(table), 100);
  EXPECT_EQ(Pull(table, {1000}, {.function = "dump"}), expected);
  EXPECT_EQ(Rows(table), 101);
}

TEST_F(ReadFunctionTest, WithManyKeysEachHasItsResult) {
  // More than are read at a time, in rows of 1,024 bytes.
  const Table table = Create({.name = "t",
                              .width = 128,
                              .rule = {"Adagrad", {{"lr", 0.1}}},
                              .initializer = Initializer::Constant(1)});
  std::vector<int64_t> keys(2500);
  std::iota(keys.begin(), keys.end(), 0);
  for (int64_t begin = 0; begin < 2500; begin += 500) {
    const std::vector<int64_t> part(keys.begin() + begin,
                                    keys.begin() + begin + 500);
    const std::vector<float> results = Pull(table, part, {.function = "dump"});
    ASSERT_EQ(results.size(), part.size() * (2 + 4 * 128));
    for (size_t i = 0; i < part.size(); ++i) {
      ASSERT_EQ(results[i * (2 + 4 * 128)], static_cast<float>(part[i]));
    }
  }
}

TEST_F(ReadFunctionTest, WrongRequestsAreRefused) {
  const Table table = Numbered({});
  const auto expect_refused = [&](const PullOptions& options,
                                  const std::string& error) {
    EXPECT_THAT(table.Pull(Keys({1}), options).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
    EXPECT_THAT(table.PullSums(Keys({1}), options).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  };
  expect_refused({.function = "cosine"},
                 "table \"t\": read function \"cosine\" is not known to this "
                 "server, which has dot, dump, ");
  expect_refused({.function = "dot"}, "dot takes one f32[width]");
  expect_refused({.function = "too_wide"}, "results of 65537 numbers");
  expect_refused({.function = "empty"}, "nothing that reads");
  expect_refused({.arguments = {Tensor::Zeros({1})}},
                 "need the name of a read function");
  expect_refused(
      {.function = "dot",
       .arguments = {Tensor::Zeros({2}, {.dtype = tensor::DType::kI64})}},
      "must be f32 on cpu");
  expect_refused({.function = "dot",
                  .arguments = std::vector<Tensor>(17, Tensor::Zeros({1}))},
                 "at most 16 arguments");
  expect_refused(
      {.function = "dot", .arguments = {Tensor::Zeros({(1 << 18) + 1})}},
      "1048576 bytes together");
}

// As other clients may send them.
TEST_F(ReadFunctionTest, WrongTensorsOfARequestAreRefused) {
  const Table table = Numbered({});
  v1::PullRequest request;
  request.set_table("t");
  const Tensor key = Keys({OrderedKeysBelow(100)[0]});
  const Tensor argument = Tensor::Zeros({2});
  EXPECT_THAT(Send(kPullMethod, request, {key, argument}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 2 tensors; it needs 1")));
  request.set_function("dot");
  EXPECT_THAT(Send(kPullMethod, request, {key, argument}), IsOk());
  EXPECT_THAT(Send(kPullMethod, request, std::vector<Tensor>(18, key)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it needs 1 to 17")));
  EXPECT_THAT(Send(kPullMethod, request, {key, key}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("arguments of a read function are f32")));
  EXPECT_THAT(Send(kPullMethod, request, {key, Tensor::Zeros({(1 << 18) + 1})}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("at most 1048576 bytes")));
}

TEST(RegisterReadFunctionTest, WrongRegistrationsAreRefused) {
  ASSERT_THAT(RegisterReadFunction("twice", MakeDump), IsOk());
  EXPECT_THAT(RegisterReadFunction("twice", MakeDump),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("twice")));
  EXPECT_THAT(RegisterReadFunction("a b", MakeDump),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RegisterReadFunction("", MakeDump),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RegisterReadFunction("none", nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::ps
