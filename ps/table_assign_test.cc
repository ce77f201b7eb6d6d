// Table::Assign and PushPull.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/agent/service_host.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

Tensor Keys(const std::vector<int64_t>& keys) {
  return Tensor::FromVector(keys, {static_cast<int64_t>(keys.size())});
}

Tensor Column(const std::vector<float>& values) {
  return Tensor::FromVector(values, {static_cast<int64_t>(values.size()), 1});
}

// Worker 0 uses a table on as many servers as the parameter.
class TableAssignTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    job_.StartAll(1 + GetParam(), [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>());
    });
    std::vector<std::string> servers;
    for (int i = 1; i <= GetParam(); ++i) {
      servers.push_back("w" + std::to_string(i));
    }
    absl::StatusOr<Table> table = Table::Create(
        job_.agent(0),
        {.name = "t", .width = 1, .rule = {"Adagrad", {{"lr", 1}, {"eps", 0}}}},
        std::move(servers));
    ASSERT_THAT(table, IsOk());
    table_ = std::make_unique<Table>(*std::move(table));
  }

  std::vector<float> Pull(const std::vector<int64_t>& keys) {
    absl::StatusOr<Tensor> rows = table_->Pull(Keys(keys)).Wait();
    EXPECT_THAT(rows, IsOk());
    return rows->ToVector<float>();
  }

  rpc::TestJob job_;
  std::unique_ptr<Table> table_;
};

TEST_P(TableAssignTest, AssignedWeightsReplaceRows) {
  const std::vector<int64_t> keys = {7, -3, 5, 12};
  ASSERT_THAT(table_->Push(Keys({7}), Column({100})).Wait(), IsOk());
  ASSERT_THAT(table_->Assign(Keys(keys), Column({1, 2, 3, 4})).Wait(), IsOk());
  EXPECT_EQ(Pull(keys), (std::vector<float>{1, 2, 3, 4}));
  // The first update of a new row moves it by the learning rate.
  ASSERT_THAT(table_->Push(Keys({7}), Column({8})).Wait(), IsOk());
  EXPECT_EQ(Pull({7})[0], 0);
}

TEST_P(TableAssignTest, AssignCanKeepRowsThatExist) {
  ASSERT_THAT(table_->Assign(Keys({1, 2}), Column({1, 2})).Wait(), IsOk());
  ASSERT_THAT(table_
                  ->Assign(Keys({3, 2, 1}), Column({30, 20, 10}),
                           {.keep_existing = true})
                  .Wait(),
              IsOk());
  EXPECT_EQ(Pull({1, 2, 3}), (std::vector<float>{1, 2, 30}));
}

TEST_P(TableAssignTest, RepeatedKeysHaveNoAssignment) {
  EXPECT_THAT(table_->Assign(Keys({4, 2, 4}), Column({1, 2, 3})).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a key is repeated among the 3")));
  EXPECT_THAT(table_->Assign(Keys({4, 2}), Column({1, 2, 3})).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("weights must be f32[2, 1]")));
  EXPECT_EQ(table_->Size().Wait()->rows, 0);
}

TEST_P(TableAssignTest, PushPullReturnsTheRowsAfterTheUpdate) {
  const std::vector<int64_t> keys = {7, -3, 7, 12, 5, 0};
  const absl::StatusOr<Tensor> rows =
      table_->PushPull(Keys(keys), Column({1, -2, 3, 4, -5, 6})).Wait();
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->shape(), tensor::Shape({6, 1}));
  EXPECT_EQ(rows->ToVector<float>(),
            (std::vector<float>{-1, 1, -1, -1, 1, -1}));
  EXPECT_EQ(Pull(keys), rows->ToVector<float>());
  EXPECT_EQ(table_->PushPull(Keys({}), Tensor::Zeros({0, 1})).Wait()->shape(),
            tensor::Shape({0, 1}));
}

TEST_P(TableAssignTest, UnknownKindOfPushIsRefused) {
  v1::PushRequest request;
  request.set_table("t");
  request.set_sequence(1000);
  request.set_kind(static_cast<v1::PushKind>(9));
  EXPECT_THAT(job_.agent(0)
                  .host()
                  .CallMethod("w1", kPushMethod, request,
                              {Keys({}), Tensor::Zeros({0, 1})})
                  .Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown kind of push: 9")));
}

INSTANTIATE_TEST_SUITE_P(Servers, TableAssignTest, testing::Values(1, 3));

}  // namespace
}  // namespace hawser::ps
