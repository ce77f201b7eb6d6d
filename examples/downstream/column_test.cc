#include "column.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "rpc/functions/function_registry.h"
#include "store/hash/store.h"
#include "tensor/tensor.h"

namespace {

using hawser::Tensor;
using hawser::launch::Worker;
using hawser::launch::WorkerOptions;

TEST(ColumnTest, ReadsAcrossRows) {
  const auto matrix = Tensor::FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const absl::StatusOr<std::vector<float>> column = Column(matrix, 1);
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(*column, (std::vector<float>{2, 5}));
}

TEST(ColumnTest, IndexOutOfRangeIsAnError) {
  const auto matrix = Tensor::FromVector<float>({1, 2}, {1, 2});
  EXPECT_EQ(Column(matrix, 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(ColumnTest, VectorIsRejected) {
  const auto vector = Tensor::FromVector<float>({1, 2}, {2});
  EXPECT_EQ(Column(vector, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ColumnTest, AnotherWorkerReadsAColumn) {
  hawser::store::HashStore store;
  hawser::rpc::FunctionRegistry registry;
  ASSERT_TRUE(ServeColumn(registry).ok());
  const auto start = [&](int rank) {
    WorkerOptions options;
    options.identity.rank = rank;
    options.meeting_place.store = &store;
    options.registry = &registry;
    // Long, because a busy machine may stall the process.
    options.limits.liveness.silent_limit = absl::Seconds(20);
    return Worker::Start(std::move(options));
  };
  const auto server = start(0);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto client = start(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto matrix = Tensor::FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const absl::StatusOr<std::vector<float>> column =
      (*client)->agent().Sync("worker0", kColumn, matrix, 2);
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(*column, (std::vector<float>{3, 6}));
}

}  // namespace
