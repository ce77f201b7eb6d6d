#include "ps/storage/table_export.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "tensor/io/npy.h"
#include "tensor/io/safetensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Shape;
using ::hawser::tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<SparseTable> Create(const TableSpec& spec) {
  auto table = SparseTable::Create(spec);
  EXPECT_THAT(table, IsOk());
  return *std::move(table);
}

// Adds `gradients` to the rows of `keys`.
void Add(SparseTable& table, const std::vector<uint64_t>& keys,
         std::vector<float> gradients) {
  for (float& gradient : gradients) gradient = -gradient;
  ASSERT_THAT(table.Push(keys, gradients, {1}), IsOk());
}

std::string Path(const std::string& name) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(path);
  return path;
}

TEST(TableExportTest, ASparseTableHasItsKeysInOrderAndTheirWeights) {
  const auto table =
      Create({.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}});
  const uint64_t largest = ~uint64_t{0};
  Add(*table, {largest, 5, 70}, {1, 2, 3, 4, 5, 6});
  const auto tensors = ExportTable(*table);
  ASSERT_THAT(tensors, IsOk());

  const std::string file = Path("t.safetensors");
  ASSERT_THAT(WriteTensors(*tensors, file), IsOk());
  const auto read = tensor::LoadSafetensors(file);
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->Find("keys")->ToVector<int64_t>(), ElementsAre(5, 70, -1));
  EXPECT_EQ(read->Find("weights")->shape(), Shape({3, 2}));
  EXPECT_THAT(read->Find("weights")->ToVector<float>(),
              ElementsAre(3, 4, 5, 6, 1, 2));

  const std::string directory = Path("t");
  ASSERT_THAT(WriteTensors(*tensors, directory), IsOk());
  EXPECT_THAT(tensor::ReadNpy(directory + "/keys.npy")->ToVector<int64_t>(),
              ElementsAre(5, 70, -1));
  EXPECT_THAT(tensor::ReadNpy(directory + "/weights.npy")->ToVector<float>(),
              ElementsAre(3, 4, 5, 6, 1, 2));
}

TEST(TableExportTest, AnEmptyTableIsEmpty) {
  const auto tensors = ExportTable(*Create({.name = "t", .width = 2}));
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ((*tensors)[0].second.shape(), Shape({0}));
  EXPECT_EQ((*tensors)[1].second.shape(), Shape({0, 2}));
}

// Three chunks of 16 numbers, of which the second was not assigned.
TEST(TableExportTest, ADenseTableHasItsTensors) {
  const auto table =
      Create({.name = "m",
              .width = 16,
              .rule = {"SGD", {{"lr", 1}}},
              .tensors = {{"a/weight", Shape({4, 6})}, {"bias", Shape({20})}}});
  std::vector<float> numbers;
  for (int i = 0; i < 32; ++i) numbers.push_back(static_cast<float>(i + 1));
  Add(*table, {KeyOfChunk(0, 3), KeyOfChunk(2, 3)}, numbers);
  const auto tensors = ExportTable(*table);
  ASSERT_THAT(tensors, IsOk());
  ASSERT_EQ(tensors->size(), 2);
  EXPECT_EQ((*tensors)[0].first, "a/weight");
  EXPECT_EQ((*tensors)[0].second.shape(), Shape({4, 6}));
  std::vector<float> weight(numbers.begin(), numbers.begin() + 16);
  weight.resize(24);
  EXPECT_EQ((*tensors)[0].second.ToVector<float>(), weight);
  std::vector<float> bias(8);
  bias.insert(bias.end(), numbers.begin() + 16, numbers.begin() + 28);
  EXPECT_EQ((*tensors)[1].second.ToVector<float>(), bias);

  const std::string directory = Path("m");
  ASSERT_THAT(WriteTensors(*tensors, directory), IsOk());
  EXPECT_EQ(tensor::ReadNpy(directory + "/a+weight.npy")->ToVector<float>(),
            weight);

  Add(*table, {7}, std::vector<float>(16));
  EXPECT_THAT(ExportTable(*table),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("row 7")));
}

TEST(TableExportTest, APartOfATableIsRefused) {
  const auto table =
      SparseTable::Create({.name = "t", .width = 2, .num_shards = 10},
                          {.shards = ShardRange{0, 4}});
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(ExportTable(**table),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("4 of 10 shards")));
}

TEST(TableExportTest, AnExistingFileIsKept) {
  const std::string file = Path("kept.safetensors");
  const auto tensors = ExportTable(*Create({.name = "t", .width = 2}));
  ASSERT_THAT(WriteTensors(*tensors, file), IsOk());
  EXPECT_THAT(WriteTensors(*tensors, file),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(file)));
  EXPECT_THAT(WriteTensors(*tensors, Path("missing") + "/x"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cannot create the directory")));
}

}  // namespace
}  // namespace hawser::ps
