#include "ps/dense_table.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

const std::vector<std::string> kServers = {"w1", "w2", "w3"};

// Worker 0 uses tables on the workers 1 to 3.
class DenseTableTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(4, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>());
    });
  }

  DenseTable Create(const std::vector<DenseTensor>& tensors) {
    absl::StatusOr<DenseTable> table =
        DenseTable::Create(job_.agent(0),
                           {.name = "model",
                            .tensors = tensors,
                            .rule = {"SGD", {{"lr", 1}, {"momentum", 0.5}}}},
                           kServers);
    EXPECT_THAT(table, IsOk());
    return *table;
  }

  rpc::TestJob job_;
};

// The numbers from `first` on.
Tensor Count(const tensor::Shape& shape, float first) {
  Tensor tensor = Tensor::Empty(shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<float>()[i] = first + static_cast<float>(i % 10007);
  }
  return tensor;
}

TEST_F(DenseTableTest, TensorsOfAnyShapeAreUpdatedAsWholes) {
  const std::vector<DenseTensor> tensors = {
      {"scalar", {}}, {"weight", {30, 7}}, {"none", {0, 3}}, {"bias", {31}}};
  const DenseTable table = Create(tensors);
  EXPECT_EQ(table.tensors(), tensors);
  std::vector<Tensor> weights;
  std::vector<Tensor> gradients;
  for (const DenseTensor& tensor : tensors) {
    weights.push_back(Count(tensor.shape, 5));
    gradients.push_back(Count(tensor.shape, 1));
  }
  ASSERT_THAT(table.Assign(weights).Wait(), IsOk());
  // The bias has no gradient in the first step.
  std::vector<Tensor> first = gradients;
  first[3] = Tensor();
  ASSERT_THAT(table.Push(first).Wait(), IsOk());
  const absl::StatusOr<std::vector<Tensor>> updated =
      table.PushPull(gradients, {.learning_rate = 2}).Wait();
  ASSERT_THAT(updated, IsOk());
  const absl::StatusOr<std::vector<Tensor>> pulled = table.Pull().Wait();
  ASSERT_THAT(pulled, IsOk());
  ASSERT_EQ(pulled->size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_EQ((*pulled)[i].shape(), tensors[i].shape);
    const std::vector<float> values = (*pulled)[i].ToVector<float>();
    EXPECT_EQ((*updated)[i].ToVector<float>(), values);
    for (size_t k = 0; k < values.size(); ++k) {
      const auto gradient = static_cast<float>(k + 1);
      EXPECT_EQ(values[k], static_cast<float>(k + 5) -
                               (i == 3 ? 2 * gradient : 4 * gradient))
          << tensors[i].name << " " << k;
    }
  }
}

// 24 MiB: two requests, chunks of the greatest width.
TEST_F(DenseTableTest, LargeTensorsAreSpreadEvenly) {
  const DenseTable table = Create({{"a", {3000, 1000}}, {"b", {3000007}}});
  const std::vector<Tensor> weights = {Count({3000, 1000}, 1),
                                       Count({3000007}, 2)};
  ASSERT_THAT(table.Assign(weights).Wait(), IsOk());
  const absl::StatusOr<std::vector<Tensor>> pulled =
      table.PushPull(std::vector<Tensor>(2)).Wait();
  ASSERT_THAT(pulled, IsOk());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*pulled)[i].ToVector<float>(), weights[i].ToVector<float>());
  }
  const int64_t chunks = table.table().Size().Wait()->rows;
  EXPECT_EQ(chunks, (6000007 + 16383) / 16384);
  for (const std::string& server : kServers) {
    const auto numbers = job_.agent(server[1] - '0').DebugInfo();
    EXPECT_NEAR(std::stod(numbers.at("ps.rows")),
                static_cast<double>(chunks) / 3, 1);
  }
}

TEST_F(DenseTableTest, FirstOfSeveralInitialWeightsStays) {
  const DenseTable table = Create({{"w", {1000}}});
  ASSERT_THAT(table.Assign({Count({1000}, 1)}, {.keep_existing = true}).Wait(),
              IsOk());
  ASSERT_THAT(table.Assign({Count({1000}, 9)}, {.keep_existing = true}).Wait(),
              IsOk());
  EXPECT_EQ((*table.Pull().Wait())[0].ToVector<float>(),
            Count({1000}, 1).ToVector<float>());
}

TEST_F(DenseTableTest, OpenedTableHasTheTensors) {
  const DenseTable table = Create({{"w", {2, 3}}, {"b", {}}});
  ASSERT_THAT(table.Assign({Count({2, 3}, 1), Count({}, 8)}).Wait(), IsOk());
  const absl::StatusOr<DenseTable> opened =
      DenseTable::Open(job_.agent(2), "model", kServers);
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->tensors(), table.tensors());
  EXPECT_EQ((*opened->Pull().Wait())[1].ToVector<float>(),
            std::vector<float>{8});
}

TEST_F(DenseTableTest, WrongTensorsAreNamed) {
  const DenseTable table = Create({{"w", {2, 3}}, {"b", {4}}});
  EXPECT_THAT(table.Push({Count({2, 3}, 1), Count({5}, 1)}).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients of \"b\" must be f32[4]")));
  EXPECT_THAT(table.PushPull({Count({2, 3}, 1)}).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 2 tensors; these are 1 gradients")));
  EXPECT_THAT(table.Assign({Count({2, 3}, 1), Tensor()}).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("weights of \"b\" must be f32[4]")));
}

TEST_F(DenseTableTest, TablesThatAreNotDenseAreRefused) {
  ASSERT_THAT(
      Table::Create(job_.agent(0), {.name = "rows", .width = 3}, kServers),
      IsOk());
  EXPECT_THAT(DenseTable::Open(job_.agent(0), "rows", kServers),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not a dense one")));
  EXPECT_THAT(DenseTable::Create(
                  job_.agent(0),
                  {.name = "model", .rule = {"SGD", {{"lr", 1}}}}, kServers),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DenseTable::Create(job_.agent(0),
                                 {.name = "model",
                                  .tensors = {{"w", {3}}},
                                  .rule = {"LAMB", {{"lr", 1}}}},
                                 kServers),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot update tensors in chunks")));
}

}  // namespace
}  // namespace hawser::ps
