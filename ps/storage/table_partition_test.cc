#include "ps/storage/table_partition.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/snapshot/partition_copy.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

std::unique_ptr<TablePartition> Partition(const TableSpec& spec,
                                          int64_t max_rows = 1000) {
  return std::make_unique<TablePartition>(
      *TableFormat::Create(spec), std::make_shared<const TableTime>(nullptr),
      PartitionShare{.max_rows = max_rows, .num_shards = spec.num_shards},
      nullptr);
}

std::vector<float> Row(TablePartition& partition, uint64_t key, size_t width) {
  std::vector<float> row(width);
  EXPECT_THAT(partition.Pull({&key, 1}, MissingRows::kKeep, row.data()),
              IsOk());
  return row;
}

absl::Status Push(TablePartition& partition, uint64_t key, float gradient) {
  return partition.Push({&key, 1}, &gradient, {1}).status();
}

absl::Status Assign(TablePartition& partition, uint64_t key, float weight,
                    ExistingRows existing = ExistingRows::kReplace,
                    const std::optional<PushId>& id = std::nullopt) {
  return partition.Assign({&key, 1}, &weight, existing, id).status();
}

const TableSpec kAdagrad = {
    .name = "t", .width = 1, .rule = {"Adagrad", {{"lr", 1}, {"eps", 0}}}};

TEST(TablePartitionTest, AssignedRowIsUpdatedAsANewOne) {
  const auto partition = Partition(kAdagrad);
  ASSERT_THAT(Push(*partition, 1, 100), IsOk());
  for (const uint64_t key : {1, 2}) {
    ASSERT_THAT(Assign(*partition, key, 5), IsOk());
    EXPECT_EQ(Row(*partition, key, 1)[0], 5);
    // The first gradient moves a weight by the learning rate.
    ASSERT_THAT(Push(*partition, key, 3), IsOk());
    EXPECT_EQ(Row(*partition, key, 1)[0], 4) << key;
  }
  EXPECT_EQ(partition->num_rows(), 2);
}

TEST(TablePartitionTest, AssignCanKeepRowsThatExist) {
  const auto partition = Partition(kAdagrad);
  ASSERT_THAT(Assign(*partition, 1, 5, ExistingRows::kKeep), IsOk());
  ASSERT_THAT(Push(*partition, 1, 3), IsOk());
  ASSERT_THAT(Assign(*partition, 1, 9, ExistingRows::kKeep), IsOk());
  EXPECT_EQ(Row(*partition, 1, 1)[0], 4);
}

TEST(TablePartitionTest, RepeatedAssignmentIsRecognised) {
  const auto partition = Partition(kAdagrad);
  const PushId id = {rpc::Incarnation{7}, 1};
  ASSERT_THAT(Assign(*partition, 1, 5, ExistingRows::kReplace, id), IsOk());
  ASSERT_THAT(Push(*partition, 1, 3), IsOk());
  ASSERT_THAT(Assign(*partition, 1, 5, ExistingRows::kReplace, id), IsOk());
  EXPECT_EQ(Row(*partition, 1, 1)[0], 4);
}

TEST(TablePartitionTest, AssignmentBeyondTheLimitChangesNothing) {
  const auto partition = Partition(kAdagrad, /*max_rows=*/1);
  ASSERT_THAT(Assign(*partition, 1, 5), IsOk());
  EXPECT_THAT(Assign(*partition, 2, 5),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(partition->num_rows(), 1);
}

// More rows of the greatest width than a group of the pipeline.
TEST(TablePartitionTest, WidestRowsAreUpdatedAndCopied) {
  constexpr size_t kWidth = 65536;
  constexpr size_t kRows = 70;
  const auto partition =
      Partition({.name = "t",
                 .width = kWidth,
                 .rule = {"SGD", {{"lr", 1}, {"momentum", 0.5}}},
                 .tensors = {{"w", {kWidth * kRows}}}});
  std::vector<uint64_t> keys(kRows);
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 0; i < kRows; ++i) keys[i] = i * i;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 1009);
  }
  const KeyBatch batch = {keys.data(), kRows};
  ASSERT_THAT(
      partition->Assign(batch, values.data(), ExistingRows::kReplace, {}),
      IsOk());
  const std::vector<float> gradients(values.size(), 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(partition->Push(batch, gradients.data(), {2}), IsOk());
  }
  std::vector<float> rows(values.size());
  ASSERT_THAT(partition->Pull(batch, MissingRows::kKeep, rows.data()), IsOk());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(rows[i], values[i] - 2 * (1 + 1.5f)) << i;
  }
  // Weights and momentum, with a tenth more.
  EXPECT_LE(partition->bytes(), 2 * values.size() * sizeof(float) * 11 / 10);
  PartitionCopy copy;
  ASSERT_THAT(partition->Export(copy), IsOk());
  const auto restored =
      Partition({.name = "t",
                 .width = kWidth,
                 .rule = {"SGD", {{"lr", 1}, {"momentum", 0.5}}},
                 .tensors = {{"w", {kWidth * kRows}}}});
  ASSERT_THAT(restored->Import(copy.rows.rows(), 0), IsOk());
  EXPECT_EQ(Row(*restored, keys[kRows - 1], kWidth),
            Row(*partition, keys[kRows - 1], kWidth));
}

// Pushes to all rows go on meanwhile: the rows of a copy must have the same
// ones, which are those that the copy says it contains.
TEST(TablePartitionTest, CopyIsOfOneMoment) {
  constexpr size_t kWidth = 16;
  constexpr uint64_t kRows = 2000;
  const auto partition = Partition(
      {.name = "t", .width = kWidth, .rule = {"SGD", {{"lr", 1}}}}, kRows);
  std::vector<uint64_t> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = i * i;
  const KeyBatch batch = {keys.data(), kRows};
  const std::vector<float> zeros(kRows * kWidth);
  const std::vector<float> gradients(kRows * kWidth, -1);
  constexpr rpc::Incarnation kClient{7};
  ASSERT_THAT(partition->Assign(batch, zeros.data(), ExistingRows::kReplace,
                                PushId{kClient, 1}),
              IsOk());
  std::atomic<bool> done{false};
  std::thread pusher([&] {
    for (uint64_t sequence = 2; !done; ++sequence) {
      EXPECT_THAT(partition->Push(batch, gradients.data(), {1},
                                  PushId{kClient, sequence}),
                  IsOk());
    }
  });
  PartitionCopy copy;
  // Instrumented, the pusher holds the lock most of the time.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (int i = 0; i < 100 && std::chrono::steady_clock::now() < end; ++i) {
    const auto pushes = partition->Export(copy);
    ASSERT_THAT(pushes, IsOk());
    ASSERT_EQ(pushes->clients.size(), 1);
    const auto expected =
        static_cast<float>(pushes->clients[0].second.highest() - 1);
    std::map<float, size_t> weights;
    copy.rows.ForEach([&](uint64_t, const std::byte* row) {
      float row_weights[kWidth];
      std::memcpy(row_weights, row, sizeof(row_weights));
      for (const float weight : row_weights) ++weights[weight];
    });
    EXPECT_EQ(weights, (std::map<float, size_t>{{expected, kRows * kWidth}}));
  }
  done = true;
  pusher.join();
}

}  // namespace
}  // namespace hawser::ps
