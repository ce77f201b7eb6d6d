#include "data/npy_dataset.h"

#include <unistd.h>

#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "data/loader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/io/npy.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Write(const std::string& name, const Tensor& tensor) {
  std::string path = testing::TempDir() + "/npy_dataset_test_" + name + ".npy";
  EXPECT_THAT(tensor::WriteNpy(path, tensor), IsOk());
  return path;
}

TEST(NpyDatasetTest, ABatchHasTheRowsOfEachFile) {
  const auto dataset = NpyDataset::Open(
      {Write("x", *Tensor::Arange(6).Reshape({3, 2})),
       Write("y", Tensor::FromVector<int64_t>({7, 8, 9}, {3}))});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 3);
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{2, 0});
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT((*batch)[1].ToVector<int64_t>(), ElementsAre(9, 7));
}

TEST(NpyDatasetTest, IndicesOutsideAreRefused) {
  const auto dataset = NpyDataset::Open({Write("few", Tensor::Ones({2}))});
  EXPECT_THAT((*dataset)->Fetch(std::vector<int64_t>{2}),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("no sample 2 in a data set of 2")));
}

TEST(NpyDatasetTest, FilesOfDifferentLengthsAreRefusedByName) {
  const std::string three = Write("three", Tensor::Ones({3}));
  const std::string four = Write("four", Tensor::Ones({4, 2}));
  EXPECT_THAT(NpyDataset::Open({three, four}),
              StatusIs(kInvalid, AllOf(HasSubstr(four + " has 4 samples"),
                                       HasSubstr(three + " has 3"))));
  EXPECT_THAT(NpyDataset::Open({}),
              StatusIs(kInvalid, HasSubstr("at least one file")));
  EXPECT_THAT(NpyDataset::Open({three, three + ".none"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(".none")));
}

TEST(NpyDatasetTest, ALoaderNamesTheSampleThatAFileLost) {
  const std::string path = Write("lost", Tensor::Ones({100, 4}));
  const auto dataset = NpyDataset::Open({path});
  ASSERT_THAT(dataset, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 128 + 16 * 50), 0);
  async::ThreadPool pool({});
  auto loader =
      Loader::Start(*dataset, {3, 49, 50, 4}, {.batch_samples = 3}, &pool);
  ASSERT_THAT(loader, IsOk());
  EXPECT_THAT(loader->Next(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("batch 0, sample 50: " + path),
                             HasSubstr("ends at byte 928"))));
  EXPECT_THAT(loader->Next(), IsOk());
}

}  // namespace
}  // namespace hawser::data
